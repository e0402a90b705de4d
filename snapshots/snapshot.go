package snapshots

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
)

// Header describes a snapshot: the data of its first line.
type Header struct {
	Meta
	Count int       `json:"count"` // states
	Time  time.Time `json:"time"`  // when it was made
}

// ending is the data of the last line.
type ending struct {
	Count  int    `json:"count"`
	Digest string `json:"digest"`
}

// frame is the first or the last line, as a CloudEvent.
type frame[T any] struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Type        string `json:"type"`
	Time        string `json:"time,omitempty"`
	ContentType string `json:"datacontenttype"`
	Data        T      `json:"data"`
}

func encodeFrame[T any](h Header, kind string, data T) ([]byte, error) {
	id := h.Epoch + "@" + strconv.FormatUint(h.Sequence, 10) + "/" + kind[strings.LastIndexByte(kind, '.')+1:]
	text, err := json.Marshal(frame[T]{"1.0", id, events.ExportSource, kind, h.Time.UTC().Format(time.RFC3339Nano), "application/json", data})
	return append(text, '\n'), err
}

// IsFrame reports whether a line is the first or the last one of a snapshot, and no event.
func IsFrame(line []byte) bool {
	if !bytes.Contains(line, []byte(`"registry.snapshot.`)) {
		return false
	}
	var of struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(line, &of) == nil && (of.Type == events.TypeSnapshotBegun || of.Type == events.TypeSnapshotEnded)
}

// Write writes a snapshot of the store. It calls begin, if it is not nil, before the first byte.
func Write(ctx context.Context, s *Store, to io.Writer, begin func(Header)) (h Header, err error) {
	h.Time = time.Now().UTC().Truncate(time.Millisecond)
	var w *Writer
	err = s.Each(func(m Meta, count int) error {
		h.Meta, h.Count = m, count
		if begin != nil {
			begin(h)
		}
		w, err = NewWriter(to, h)
		return err
	}, func(state State) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return w.Add(state)
	})
	if err != nil {
		return h, err
	}
	return h, w.End()
}

// Writer writes a snapshot line by line.
type Writer struct {
	out    *bufio.Writer
	header Header
}

// NewWriter writes the first line.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	if h.Follows == nil {
		h.Follows = []string{} // JSON without null
	}
	w := &Writer{bufio.NewWriterSize(to, 64<<10), h}
	line, err := encodeFrame(h, events.TypeSnapshotBegun, h)
	if err != nil {
		return nil, err
	}
	_, err = w.out.Write(line)
	return w, err
}

// Add writes the line of a state, with its sequence in the stream as the extension sequence. (It is a
// string: an integer of CloudEvents has 32 bits.)
func (w *Writer) Add(s State) error {
	if len(s.Line) == 0 || s.Line[0] != '{' {
		return errors.New("a state is no event")
	}
	if s.Sequence > 0 {
		_, _ = w.out.WriteString(`{"sequence":"`) // the last write has the error of all
		_, _ = w.out.WriteString(strconv.FormatUint(s.Sequence, 10))
		_, _ = w.out.WriteString(`",`)
		_, _ = w.out.Write(s.Line[1:])
	} else {
		_, _ = w.out.Write(s.Line)
	}
	return w.out.WriteByte('\n')
}

// End writes the last line.
func (w *Writer) End() error {
	line, err := encodeFrame(w.header, events.TypeSnapshotEnded, ending{w.header.Count, w.header.Digest})
	if err != nil {
		return err
	}
	_, _ = w.out.Write(line) // Flush has the error
	return w.out.Flush()
}

// ErrIncomplete means that a snapshot has no last line: whoever wrote it did not finish.
var ErrIncomplete = errors.New("it is cut short: its last line is missing")

const (
	maxSnapshotLine = events.MaxPayload + 16<<10 // a state with its sequence, or a first line
	maxSnapshotMark = 64
)

// Read reads a snapshot, which may be packed, and is not trusted. It calls begin with the first line,
// and then visit with each state and its sequence, in the order of their keys. The states count only if
// the error is nil.
func Read(from io.Reader, begin func(Header) error, visit func(sequence uint64, e events.Event) error) error {
	text, err := Unpack(from)
	if err != nil {
		return err
	}
	r := reader{begin: begin, visit: visit}
	err = ReadLines(text, maxSnapshotLine, func(number int, line []byte, err error) error {
		if err == nil {
			err = r.readLine(line)
		}
		if err != nil && r.begun {
			return fmt.Errorf("line %d: %w", number, err)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !r.begun:
		return errNoSnapshot
	case !r.ended:
		return ErrIncomplete
	}
	return nil
}

var errNoSnapshot = errors.New("not a snapshot or export of the registry")

// reader checks the lines of a snapshot.
type reader struct {
	begin func(Header) error
	visit func(uint64, events.Event) error

	begun, ended bool
	header       Header
	last         events.Subject
	count        int
	digest       readmodel.Digest
}

func (r *reader) readLine(line []byte) error {
	switch {
	case r.ended:
		return errors.New("there is more after the last line")
	case !r.begun:
		return r.readBegin(line)
	case IsFrame(line):
		return r.readEnd(line)
	}
	return r.readState(line)
}

func (r *reader) readBegin(line []byte) error {
	var of frame[Header]
	if err := json.Unmarshal(line, &of); err != nil || of.Type != events.TypeSnapshotBegun {
		return errNoSnapshot
	}
	if err := checkHeader(of.Data); err != nil {
		return err
	}
	r.header, r.begun = of.Data, true
	if len(r.header.Follows) == 0 {
		r.header.Follows = nil
	}
	return r.begin(r.header)
}

func checkHeader(h Header) error {
	if h.Count < 0 || len(h.Marks) > maxSnapshotMark || len(h.Follows) > stream.MaxFollows || len(h.Digest) != len(readmodel.Digest{}.String()) {
		return errors.New("its first line is out of bounds")
	}
	for _, name := range append([]string{h.Stream, h.Epoch}, h.Follows...) {
		if len(name) == 0 || len(name) > 256 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("its first line names no stream and epoch")
		}
	}
	return nil
}

func (r *reader) readState(line []byte) error {
	var of struct {
		Sequence string `json:"sequence"`
	}
	if err := json.Unmarshal(line, &of); err != nil {
		return err
	}
	sequence := uint64(0)
	if of.Sequence != "" {
		var err error
		if sequence, err = strconv.ParseUint(of.Sequence, 10, 64); err != nil {
			return errors.New("sequence: not a number")
		}
	}
	e, err := events.Decode(line)
	if err != nil {
		return err
	}

	subject := e.Data.Subject()
	if r.count > 0 && compareSubjects(r.last, subject) >= 0 {
		return errors.New("its subject is out of order")
	}
	if r.count++; r.count > r.header.Count {
		return fmt.Errorf("more than the %d states of the first line", r.header.Count)
	}
	r.last = subject
	r.digest.Add(readmodel.StateDigest(e.Data))
	return r.visit(sequence, e)
}

func (r *reader) readEnd(line []byte) error {
	var of frame[ending]
	if err := json.Unmarshal(line, &of); err != nil || of.Type != events.TypeSnapshotEnded {
		return errors.New("a second first line")
	}
	if r.count != r.header.Count || of.Data.Count != r.count {
		return fmt.Errorf("%d states, not %d", r.count, r.header.Count)
	}
	if is := r.digest.String(); is != of.Data.Digest || is != r.header.Digest {
		return fmt.Errorf("the digest of the states is %s, not %s", is, of.Data.Digest)
	}
	r.ended = true
	return nil
}
