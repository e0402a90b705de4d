package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// tombstonesCmd writes who was delisted, without names.
type tombstonesCmd struct {
	Snapshot string `arg:"" optional:"" name:"NAME or FILE" help:"A file if one of this name exists, else a snapshot in the object store. Default: the running server's."`
	cli.AdminFlags
	bucketFlags
}

// Help is what registry tombstones --help says beyond the flags.
func (tombstonesCmd) Help() string {
	return "One line of JSON for each entry that has left its list and has not been listed again: list, entryId, and the stream sequence and time of the delisting. " +
		"It has no names, so keep it beside snapshot files and renew it often: registry export SNAPSHOT --tombstones FILE then accuses nobody again whose appeal has " +
		"succeeded since. Output that could not be finished ends with a line that export refuses, and with status 1."
}

// tombstonesFailed ends output that is not everything.
const tombstonesFailed = "# tombstones failed: this is not everything\n"

// Run writes nothing before a snapshot has been verified.
func (c *tombstonesCmd) Run(p *process) error {
	return endWith(p, tombstonesFailed, c.write)
}

func (c *tombstonesCmd) write(p *process, out io.Writer) error {
	if c.Snapshot == "" {
		return copyAnswer(p, c.AdminFlags, "/tombstones", out)
	}
	return c.unpacked(p, c.Snapshot, func(path string, _ snapshots.Manifest) error {
		all, err := snapshots.Tombstones(p.ctx, path)
		if err != nil {
			return err
		}
		to := bufio.NewWriter(out)
		lines := json.NewEncoder(to)
		for _, t := range all {
			if err := lines.Encode(t); err != nil {
				return err
			}
		}
		return to.Flush()
	})
}

// readTombstones reads what registry tombstones wrote. The error names the line.
func readTombstones(path string) (all []readmodel.Tombstone, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Unreadable("--tombstones", path, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		t, err := parseTombstone(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("--tombstones: %s:%d: %w; give a file that registry tombstones wrote to its end", cli.Printable(path), n, err)
		}
		all = append(all, t)
	}
	if err := lines.Err(); err != nil {
		return nil, cli.Unreadable("--tombstones", path, err)
	}
	return all, nil
}

// parseTombstone reads one line.
func parseTombstone(line []byte) (readmodel.Tombstone, error) {
	var read struct {
		List     *events.List `json:"list"`
		EntryID  *string      `json:"entryId"`
		Sequence *uint64      `json:"sequence"`
		Time     *time.Time   `json:"time"`
	}
	if err := json.Unmarshal(line, &read); err != nil {
		return readmodel.Tombstone{}, errors.New("not a tombstone")
	}
	if read.List == nil || read.EntryID == nil || read.Sequence == nil || read.Time == nil {
		return readmodel.Tombstone{}, errors.New("not a tombstone: list, entryId, sequence and time are required")
	}
	t := readmodel.Tombstone{List: *read.List, EntryID: *read.EntryID, Sequence: *read.Sequence, Time: read.Time.UTC()}
	if _, ok := t.List.Index(); !ok || !events.IsID(t.EntryID) {
		return readmodel.Tombstone{}, errors.New("not a tombstone: no such list or entryId")
	}
	return t, nil
}

// clocksDiffer is by how much the clocks of a cluster's brokers may differ.
const clocksDiffer = time.Minute

// newestAfter returns the tombstones of entries that were delisted after the checkpoint, at most
// one each, in order. A file does not say which stream's they are, and sequences of different
// streams say nothing about each other, so the time decides (cmd/registry/CONTRACT.md#coming-back).
func newestAfter(all []readmodel.Tombstone, at readmodel.Checkpoint) []readmodel.Tombstone {
	newest := map[events.Subject]readmodel.Tombstone{}
	for _, t := range all {
		if known, ok := newest[t.Subject()]; delistedAfter(t, at) && (!ok || t.Time.After(known.Time)) {
			newest[t.Subject()] = t
		}
	}
	out := make([]readmodel.Tombstone, 0, len(newest))
	for _, t := range newest {
		out = append(out, t)
	}
	readmodel.SortTombstones(out)
	return out
}

// delistedAfter is true where it cannot be known: better that somebody who is on a list is missing
// than that somebody is on it who should not be.
func delistedAfter(t readmodel.Tombstone, at readmodel.Checkpoint) bool {
	switch {
	case t.Time.IsZero(), at.MessageTime.IsZero(), t.Time.After(at.MessageTime):
		return true
	case t.Sequence > at.Sequence: // of one stream, it is the later one, though another broker's clock may have said otherwise
		return t.Time.After(at.MessageTime.Add(-clocksDiffer))
	}
	return false
}

// copyAnswer writes an answer of the running server to out.
func copyAnswer(p *process, f cli.AdminFlags, path string, out io.Writer) error {
	body, err := f.Ask(p.ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(out, body); err != nil {
		return fmt.Errorf("%s: cut short: %w", path[1:], err)
	}
	return nil
}

// endWith runs write. Where it fails after it has written something, line says so at the end of the
// output.
func endWith(p *process, line string, write func(*process, io.Writer) error) error {
	out := &counted{to: p.stdout}
	err := cli.Interrupted(p.ctx, write(p, out))
	if err != nil && out.n > 0 {
		_, tellErr := io.WriteString(p.stdout, "\n"+line)
		err = errors.Join(err, tellErr)
	}
	return err
}

// counted counts what is written.
type counted struct {
	to io.Writer
	n  int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}
