package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
)

// recordList is the server's answer to /records, read line by line.
type recordList struct {
	head  httpapi.RecordsHeader
	body  io.ReadCloser
	lines *bufio.Scanner
}

// records asks the server for its records at a sequence of at least atLeast. The caller closes the list.
func (f adminFlags) records(ctx context.Context, atLeast uint64) (*recordList, error) {
	body, err := f.ask(ctx, http.MethodGet, fmt.Sprint("/records?sequence=", atLeast))
	if err != nil {
		return nil, err
	}
	l := &recordList{body: body, lines: bufio.NewScanner(body)}
	if err := l.readHead(); err != nil {
		l.close()
		return nil, fmt.Errorf("records of the server: %w", err)
	}
	return l, nil
}

func (l *recordList) close() { _ = l.body.Close() } // what was read is complete or an error of its own

func (l *recordList) readHead() error {
	if !l.lines.Scan() {
		return errors.Join(errors.New("nothing"), l.lines.Err())
	}
	if err := json.Unmarshal(l.lines.Bytes(), &l.head); err != nil {
		return err
	}
	if l.head.Projection != readmodel.ProjectionVersion || l.head.Render != readmodel.RenderVersion {
		return errors.New("made by another version of this program; verify with the server's own")
	}
	return nil
}

// What a subject that differs is said to be.
const (
	differs    = "differs"
	onlyStream = "in the stream, not in the server"
	onlyServer = "in the server, not in the stream"
)

// compare reads the list and compares it with own, which is of the same sequence.
func (l *recordList) compare(own *readmodel.Inventory) (findings, error) {
	want := make(map[string]readmodel.Digest, own.Len())
	for key, hash := range own.All() {
		want[key.Subject()] = hash
	}
	found := findings{sequence: own.Sequence, digest: own.Digest.String(), differ: map[string]string{}}
	if err := l.read(&found, want); err != nil {
		return findings{}, fmt.Errorf("records of the server: %w", err)
	}
	for subject := range want {
		found.records++
		found.differ[subject] = onlyStream
	}
	if len(found.differ) == 0 && l.head.Digest != found.digest {
		found.differ["digest"] = "all records are the same, but the server's sum of them is " + l.head.Digest + ", not " + found.digest
	}
	return found, nil
}

// read compares the server's records with those wanted, which it takes out of want.
func (l *recordList) read(found *findings, want map[string]readmodel.Digest) error {
	for l.lines.Scan() {
		subject, hash, ok := strings.Cut(l.lines.Text(), " ")
		if !ok {
			return fmt.Errorf("%q is not a record", l.lines.Text())
		}
		found.records++
		expected, there := want[subject]
		switch {
		case !there:
			found.differ[subject] = onlyServer
		case expected.String() != hash:
			found.differ[subject] = differs
		}
		delete(want, subject)
	}
	if err := l.lines.Err(); err != nil {
		return err
	}
	if found.records != l.head.Records {
		return fmt.Errorf("%d of %d arrived", found.records, l.head.Records)
	}
	return nil
}
