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

	"github.com/klauspost/compress/zstd"

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

// frame is the first or the last line of a snapshot, as a CloudEvent.
type frame[T any] struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Type        string `json:"type"`
	Time        string `json:"time,omitempty"`
	ContentType string `json:"datacontenttype"`
	Data        T      `json:"data"`
}

// framePrefix begins the types of both frames.
const framePrefix = "registry.snapshot."

func encodeFrame[T any](h Header, kind string, data T) ([]byte, error) {
	id := fmt.Sprintf("%s@%d/%s", h.Epoch, h.Sequence, strings.TrimPrefix(kind, framePrefix)) // such as EPOCH@17/begun
	text, err := json.Marshal(frame[T]{
		SpecVersion: "1.0", ID: id, Source: events.ExportSource, Type: kind,
		Time: h.Time.UTC().Format(time.RFC3339Nano), ContentType: "application/json", Data: data,
	})
	return append(text, '\n'), err
}

// IsFrame reports whether a line is the first or the last line of a snapshot, and so no event.
func IsFrame(line []byte) bool {
	if !bytes.Contains(line, []byte(`"`+framePrefix)) { // spares most lines the decoding
		return false
	}
	var envelope struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(line, &envelope)
	return err == nil && (envelope.Type == events.TypeSnapshotBegun || envelope.Type == events.TypeSnapshotEnded)
}

// Write writes a snapshot of the store. It calls begin, if it is not nil, before the first byte.
func Write(ctx context.Context, s *Store, to io.Writer, begin func(Header)) (h Header, err error) {
	h.Time = time.Now().UTC().Truncate(time.Millisecond)

	var w *Writer // for the states, once the first line is written
	err = s.Each(func(m Meta, count int) (err error) {
		h.Meta = m
		h.Count = count
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

// Pack returns a writer that packs for Unpack. Close ends the packed text.
func Pack(to io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
}

// Writer writes a snapshot line by line.
type Writer struct {
	out    *bufio.Writer
	header Header
}

// NewWriter writes the first line.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	if h.Follows == nil {
		h.Follows = []string{} // written as [] and not as null
	}

	line, err := encodeFrame(h, events.TypeSnapshotBegun, h)
	if err != nil {
		return nil, err
	}

	w := &Writer{bufio.NewWriterSize(to, 64<<10), h}
	_, err = w.out.Write(line)
	return w, err
}

// Add writes the line of a state. The state's sequence in the stream becomes the CloudEvents extension
// sequence, as a string: an integer of CloudEvents has only 32 bits.
func (w *Writer) Add(s State) error {
	if len(s.Line) == 0 || s.Line[0] != '{' {
		return errors.New("a state is no event")
	}

	line := s.Line
	if s.Sequence > 0 {
		_, _ = w.out.WriteString(`{"sequence":"` + strconv.FormatUint(s.Sequence, 10) + `",`) // the last write returns the error
		line = line[1:]
	}

	_, _ = w.out.Write(line)
	return w.out.WriteByte('\n')
}

// End writes the last line.
func (w *Writer) End() error {
	line, err := encodeFrame(w.header, events.TypeSnapshotEnded, ending{w.header.Count, w.header.Digest})
	if err != nil {
		return err
	}
	_, _ = w.out.Write(line) // Flush returns the error
	return w.out.Flush()
}

var (
	// ErrIncomplete means that a snapshot has no last line: its writer did not finish.
	ErrIncomplete = errors.New("it is cut short: its last line is missing")

	errNoSnapshot = errors.New("not a snapshot or export of the registry")
)

const (
	maxSnapshotLine = events.MaxPayload + 16<<10 // in bytes: a state with its sequence, or the first line
	maxMarks        = 64
	maxNameLength   = 256 // of the name of a stream, and of an epoch
)

// Read reads and checks a snapshot, which may be packed. It calls visit with each state and its sequence, in the
// order of the keys, and returns the header. If Read fails, the caller must discard the visited states.
func Read(from io.Reader, visit func(sequence uint64, e events.Event) error) (Header, error) {
	text, err := Unpack(from)
	if err != nil {
		return Header{}, err
	}

	r := reader{visit: visit}
	err = ReadLines(text, maxSnapshotLine, func(number int, line []byte, err error) error {
		if err == nil {
			err = r.readLine(line)
		}
		if err != nil && r.phase != beforeFirst {
			return fmt.Errorf("line %d: %w", number, err)
		}
		return err
	})
	if err == nil && r.phase == beforeFirst {
		return r.header, errNoSnapshot
	}
	if err == nil && r.phase != afterLast {
		return r.header, ErrIncomplete
	}
	return r.header, err
}

// readPhase says which lines of a snapshot come next.
type readPhase int

const (
	beforeFirst readPhase = iota
	amongStates
	afterLast
)

// reader checks the lines of a snapshot.
type reader struct {
	visit func(uint64, events.Event) error

	phase   readPhase
	header  Header
	lastKey []byte
	count   int
	digest  readmodel.Digest
}

func (r *reader) readLine(line []byte) error {
	switch r.phase {
	case beforeFirst:
		return r.readFirst(line)
	case afterLast:
		return errors.New("there is more after the last line")
	}

	if IsFrame(line) {
		return r.readLast(line)
	}
	return r.readState(line)
}

func (r *reader) readFirst(line []byte) error {
	var first frame[Header]
	if err := json.Unmarshal(line, &first); err != nil || first.Type != events.TypeSnapshotBegun {
		return errNoSnapshot
	}
	if err := checkHeader(first.Data); err != nil {
		return err
	}

	r.phase = amongStates
	r.header = first.Data
	if len(r.header.Follows) == 0 {
		r.header.Follows = nil // JSON may have [], which would not compare as equal to a server's own identity
	}
	return nil
}

func checkHeader(h Header) error {
	hasLongList := len(h.Marks) > maxMarks || len(h.Follows) > stream.MaxFollows
	hasDigest := len(h.Digest) == len(readmodel.Digest{}.String())
	if h.Count < 0 || hasLongList || !hasDigest {
		return errors.New("its first line is out of bounds")
	}

	for _, name := range append([]string{h.Stream, h.Epoch}, h.Follows...) {
		isPrintable := !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
		if name == "" || len(name) > maxNameLength || !isPrintable {
			return errors.New("its first line names no stream and epoch")
		}
	}
	return nil
}

func (r *reader) readState(line []byte) error {
	// Writer.Add has added the sequence to the event, unless it is 0.
	var extension struct {
		Sequence uint64 `json:"sequence,string"`
	}
	if err := json.Unmarshal(line, &extension); err != nil {
		return errors.New("sequence: not a number")
	}

	e, err := events.Decode(line)
	if err != nil {
		return err
	}

	// The keys must ascend: then no subject comes twice.
	key := keyOf(e.Data.Subject())
	if bytes.Compare(r.lastKey, key) >= 0 {
		return errors.New("its subject is out of order")
	}

	r.count++
	if r.count > r.header.Count {
		return fmt.Errorf("more than the %d states of the first line", r.header.Count)
	}

	r.lastKey = key
	r.digest.Add(readmodel.StateDigest(e.Data))
	return r.visit(extension.Sequence, e)
}

// readLast reads the last line of a snapshot. It also gets a first line that comes too late, which is an error.
func (r *reader) readLast(line []byte) error {
	var last frame[ending]
	if err := json.Unmarshal(line, &last); err != nil || last.Type != events.TypeSnapshotEnded {
		return errors.New("a second first line")
	}
	if r.count != r.header.Count || last.Data.Count != r.count {
		return fmt.Errorf("%d states, not %d", r.count, r.header.Count)
	}
	if digest := r.digest.String(); digest != last.Data.Digest || digest != r.header.Digest {
		return fmt.Errorf("the digest of the states is %s, not %s", digest, last.Data.Digest)
	}

	r.phase = afterLast
	return nil
}
