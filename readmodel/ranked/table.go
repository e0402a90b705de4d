package ranked

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"github.com/blevesearch/bleve/v2/index/scorch"
	zap "github.com/blevesearch/zapx/v17"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
)

// table tells which row each document of a segment was made of. It does not change, as segments do not.
type table struct {
	refs    []readmodel.RowRef // noRow: deleted when the table was made
	lengths []packed           // zero likewise
	sum     lengths
}

const noRow = ^readmodel.RowRef(0)

// packed is a document's lengths: eight bits of name, eight of id, the rest of the reason.
type packed uint32

func pack(l lengths) packed {
	return packed(min(l[inName], 255) | min(l[inID], 255)<<8 | min(l[inReason], 1<<16-1)<<16)
}

func (p packed) unpack() lengths {
	return lengths{inName: uint64(p & 255), inID: uint64(p >> 8 & 255), inReason: uint64(p >> 16)}
}

// of returns the length of one field.
func (p packed) of(field int) uint32 {
	switch field {
	case inName:
		return uint32(p & 255)
	case inID:
		return uint32(p >> 8 & 255)
	default:
		return uint32(p >> 16)
	}
}

// readTable finds out what the documents of a segment were made of: by the segment's stamps file if rows is not nil and the
// file fits, else by a look at each document, of which it then keeps the stamps for such a file. strange gets the documents
// that are not of a row of v as it is now, and may end it by an error.
func (f *follower) readTable(seg *scorch.SegmentSnapshot, v *readmodel.View, rows func() *sequences, strange func(id string) error) (*table, error) {
	n := seg.Segment().Count()
	t := &table{refs: make([]readmodel.RowRef, n), lengths: make([]packed, n)}
	var kept, made stamps
	if rows != nil {
		kept = f.readStamps(seg)
	}
	if kept == nil {
		made = make(stamps, n*stampBytes)
		f.stamps[seg.Id()] = made
	}
	deleted := seg.Deleted()
	for doc := range n {
		if doc%1024 == 0 {
			f.meter.tick()
		}
		t.refs[doc] = noRow
		if deleted != nil && deleted.Contains(uint32(doc)) {
			continue
		}
		if kept != nil {
			sequence, l := kept.at(doc)
			if ref := rows().find(sequence); ref != noRow {
				t.refs[doc], t.lengths[doc] = ref, l
				t.sum.add(l.unpack())
				continue
			}
		}
		f.meter.tick()
		id, s, err := readStamp(seg, doc)
		if err != nil {
			return nil, err
		}
		if made != nil {
			made.put(doc, s.sequence, pack(s.lengths))
		}
		t.lengths[doc] = pack(s.lengths)
		t.sum.add(t.lengths[doc].unpack())
		if r := rowOf(v, id); r != nil && r.Sequence() == s.sequence {
			t.refs[doc] = r.Ref()
		} else if err := strange(id); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func readStamp(seg *scorch.SegmentSnapshot, doc uint64) (id string, s stamp, err error) {
	var stored []byte
	visited := seg.VisitDocument(doc, func(field string, _ byte, value []byte, _ []uint64) bool {
		switch field {
		case "_id":
			id = string(value)
		case storedField:
			stored = append(stored, value...)
		}
		return true
	})
	if visited != nil {
		return "", s, fmt.Errorf("a document cannot be read: %w", visited)
	}
	s, err = decodeStamp(stored)
	return id, s, err
}

// sequences finds the rows of a view by the sequence of their last change: that of one event, and so of one row. It is a hash
// table with room for twice as many: a map takes four times as long.
type sequences struct {
	slots []sequenceOf
	shift int
}

type sequenceOf struct {
	sequence uint64 // 0: nothing is here
	ref      readmodel.RowRef
}

func newSequences(v *readmodel.View) *sequences {
	size := bits.Len(uint(2*shown(v) + 1))
	s := &sequences{make([]sequenceOf, 1<<size), 64 - size}
	v.ShownRows(func(r *readmodel.Row) bool {
		slot := s.slot(r.Sequence())
		if slot.sequence == 0 {
			*slot = sequenceOf{r.Sequence(), r.Ref()}
		} else {
			slot.ref = noRow // whose it is cannot be told by the sequence
		}
		return true
	})
	return s
}

// slot returns where a sequence is, or would be.
func (s *sequences) slot(sequence uint64) *sequenceOf {
	at := sequence * 0x9E3779B97F4A7C15 >> s.shift // 2^64 by the golden ratio
	for s.slots[at].sequence != 0 && s.slots[at].sequence != sequence {
		at = (at + 1) % uint64(len(s.slots))
	}
	return &s.slots[at]
}

// find returns where the row of a sequence is, or noRow.
func (s *sequences) find(sequence uint64) readmodel.RowRef {
	if slot := s.slot(sequence); sequence != 0 && slot.sequence == sequence {
		return slot.ref
	}
	return noRow
}

// stamps are the stamps of a segment's documents, each in stampBytes: the sequence, 0 for a document that was deleted, and
// the lengths.
type stamps []byte

const stampBytes = 8 + 4

func (s stamps) at(doc uint64) (sequence uint64, l packed) {
	one := s[doc*stampBytes:]
	return binary.BigEndian.Uint64(one), packed(binary.BigEndian.Uint32(one[8:]))
}

func (s stamps) put(doc, sequence uint64, l packed) {
	one := s[doc*stampBytes:]
	binary.BigEndian.PutUint64(one, sequence)
	binary.BigEndian.PutUint32(one[8:], uint32(l))
}

// A file of stamps is beside its segment's, with this extension, which bleve leaves alone. It is
// header | stamps | checksum of both, big-endian as all of it.
const stampsExt = ".stamps"

// stampsVersion is that of the files' form. One of another version is not read.
const stampsVersion = 1

// stampsOf returns the file of the stamps of a segment, and what it begins with, which is true of that very segment alone; no
// name while the segment is in memory alone.
func stampsOf(seg *scorch.SegmentSnapshot) (name string, header []byte) {
	z, ok := seg.Segment().(*zap.Segment)
	if !ok {
		return "", nil
	}
	header = binary.BigEndian.AppendUint32([]byte("registry stamps "), stampsVersion)
	header = binary.BigEndian.AppendUint64(header, uint64(len(z.Data())))
	header = binary.BigEndian.AppendUint32(header, z.CRC())
	return strings.TrimSuffix(z.Path(), filepath.Ext(z.Path())) + stampsExt, header
}

// findStamps notes the files of stamps that there are, so that those of no segment are removed.
func (f *follower) findStamps() error {
	names, err := filepath.Glob(filepath.Join(currentOf(f.indexer.Dir), "*"+stampsExt))
	if err != nil {
		return fmt.Errorf("ranked search: %w", err)
	}
	for _, name := range names {
		f.kept[name] = false
	}
	return nil
}

// readStamps reads the file of a segment's stamps. It returns nil for one that is missing or damaged, or does not fit.
func (f *follower) readStamps(seg *scorch.SegmentSnapshot) stamps {
	name, header := stampsOf(seg)
	if name == "" {
		return nil
	}
	s := stampsIn(name, header, int(seg.Segment().Count()))
	f.kept[name] = s != nil
	return s
}

func stampsIn(name string, header []byte, documents int) stamps {
	content, err := os.ReadFile(name)
	end := len(header) + documents*stampBytes
	if err != nil || len(content) != end+4 || !bytes.HasPrefix(content, header) ||
		crc32.ChecksumIEEE(content[:end]) != binary.BigEndian.Uint32(content[end:]) {
		return nil
	}
	return content[len(header):end]
}

// keepStamps writes the stamps of every segment that is on the disk beside it, and removes those of segments that are gone.
// An index does without a file that cannot be written. Files are not synced: their checksum tells.
func (f *follower) keepStamps() error {
	snapshot, err := f.store.snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	used, waiting := map[string]bool{}, map[uint64]stamps{}
	for _, seg := range snapshot.Segments() {
		name, header := stampsOf(seg)
		used[name] = true
		switch made := f.stamps[seg.Id()]; {
		case made == nil || f.kept[name]:
		case name == "":
			waiting[seg.Id()] = made
		default:
			if err := f.writeStamps(name, header, made); err != nil {
				return err
			}
		}
	}
	f.stamps = waiting
	for name := range f.kept {
		if used[name] {
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			f.indexer.logger().Warn("a file of ranked search cannot be removed", "error", err)
		}
		delete(f.kept, name)
	}
	return nil
}

func (f *follower) writeStamps(name string, header []byte, s stamps) error {
	if err := cmp.Or(f.at("before-stamps"), failpoint.Hit("ranked/before-stamps")); err != nil {
		return err
	}
	content := append(header, s...)
	content = binary.BigEndian.AppendUint32(content, crc32.ChecksumIEEE(content))
	if err := os.WriteFile(name, content, 0o600); err != nil {
		f.indexer.logger().Warn("a file of ranked search cannot be written: the next start looks at its documents", "error", err)
	}
	f.kept[name] = true
	return cmp.Or(f.at("after-stamps"), failpoint.Hit("ranked/after-stamps"))
}
