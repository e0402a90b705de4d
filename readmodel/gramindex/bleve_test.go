package gramindex

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
	segment "github.com/blevesearch/scorch_segment_api/v2"
)

// bleveIndex is what this package was before it had blocks, kept to measure against: an index of bleve
// (scorch, on disk), of which the bitmaps are read without its search API. It answers for the same texts.
type bleveIndex struct {
	scorch   index.Index
	queue    *index.AnalysisQueue
	reader   *scorch.IndexSnapshot
	segments []blevePart
}

// blevePart is one immutable segment, and the numbers of its documents in its own order.
type blevePart struct {
	segment segment.Segment
	numbers []uint32
}

// openBleve makes an empty index in dir.
func openBleve(dir string) (*bleveIndex, error) {
	queue := index.NewAnalysisQueue(1)
	s, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path":               dir,
		"bolt_timeout":       "5s",
		"unsafe_batch":       true, // visible when Batch returns, durable later
		"numSnapshotsToKeep": 1,
		"scorchPersisterOptions": map[string]any{
			"PersisterNapTimeMSec":      100,
			"PersisterNapUnderNumFiles": 500,
		},
		"scorchMergePlanOptions": map[string]any{
			"MaxSegmentsPerTier":   5,
			"SegmentsPerMergeTask": 5,
			"ReclaimDeletesWeight": 2.5,
		},
	}, queue)
	if err == nil {
		err = s.Open()
	}
	if err != nil {
		queue.Close()
		return nil, err
	}
	return &bleveIndex{scorch: s, queue: queue}, nil
}

// add indexes the documents that begin at number first, in one batch. persisted may be nil.
func (x *bleveIndex) add(first int, docs []doc, persisted func(error)) error {
	batch := index.NewBatch()
	for i, d := range docs {
		id := string(binary.BigEndian.AppendUint32(nil, uint32(first+i)))
		bd := document.NewDocument(id)
		bd.AddField(&bleveField{name: bleveFields[All], text: d.text()})
		bd.AddField(&bleveField{name: bleveFields[Names], text: d.names})
		batch.Update(bd)
	}
	batch.SetPersistedCallback(persisted)
	return x.scorch.Batch(batch)
}

// snapshot takes the index as it is now for find. It is called once.
func (x *bleveIndex) snapshot() error {
	r, err := x.scorch.Reader()
	if err != nil {
		return err
	}
	x.reader = r.(*scorch.IndexSnapshot)
	for _, s := range x.reader.Segments() {
		p := blevePart{s.Segment(), make([]uint32, s.Segment().Count())}
		for i := range p.numbers {
			id, err := p.segment.DocID(uint64(i))
			if err != nil {
				return err
			}
			p.numbers[i] = binary.BigEndian.Uint32(id)
		}
		x.segments = append(x.segments, p)
	}
	return nil
}

// bytes is what the snapshot's segments take on disk, without those that are not there yet.
func (x *bleveIndex) bytes() (n int64) {
	for _, p := range x.segments {
		if file, ok := p.segment.(segment.PersistedSegment); ok {
			if info, err := os.Stat(file.Path()); err == nil {
				n += info.Size()
			}
		}
	}
	return n
}

// stop ends what runs beside the index. Its snapshot stays.
func (x *bleveIndex) stop() error {
	if x.queue == nil {
		return nil
	}
	err := x.scorch.Close()
	x.queue.Close()
	x.queue = nil
	return err
}

func (x *bleveIndex) close() error {
	var err error
	if x.reader != nil {
		err = x.reader.Close()
	}
	return errors.Join(err, x.stop())
}

// find appends the numbers of the documents that have every gram of needle in the text, in no order.
func (x *bleveIndex) find(text Text, needle string, found []uint32) ([]uint32, error) {
	grams := bleveNeedle(needle)
	for _, p := range x.segments {
		hits, err := p.all(bleveFields[text], grams)
		if err != nil {
			return nil, err
		}
		if hits != nil {
			hits.Iterate(func(n uint32) bool {
				found = append(found, p.numbers[n])
				return true
			})
		}
	}
	return found, nil
}

// all is the documents with all grams; nil when there is none.
func (p *blevePart) all(field string, grams []string) (*roaring.Bitmap, error) {
	terms, err := p.segment.Dictionary(field)
	if err != nil {
		return nil, err
	}
	var lists []*roaring.Bitmap
	for _, gram := range grams {
		list, err := bleveList(terms, gram)
		if err != nil || list == nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	slices.SortFunc(lists, func(a, b *roaring.Bitmap) int { return cmp.Compare(a.GetCardinality(), b.GetCardinality()) })
	return roaring.FastAnd(lists...), nil
}

// bleveList is the list of one gram, nil when no document has it. It belongs to the segment.
func bleveList(terms segment.TermDictionary, gram string) (*roaring.Bitmap, error) {
	list, err := terms.PostingsList([]byte(gram), nil, nil)
	if err != nil {
		return nil, err
	}
	it, ok := list.Iterator(false, false, false, nil).(segment.OptimizablePostingsIterator)
	if !ok {
		return nil, fmt.Errorf("no bitmap in %T", list)
	}
	if b := it.ActualBitmap(); b != nil && !b.IsEmpty() {
		return b, nil
	}
	return nil, nil
}

var bleveFields = map[Text]string{All: "a", Names: "n"}

// bleveField is a text as the set of its grams. Analysis makes the set, and the options leave out
// everything but the lists.
type bleveField struct {
	name, text string
	grams      index.TokenFrequencies
}

func (f *bleveField) Analyze() {
	f.grams = make(index.TokenFrequencies, len(f.text))
	bleveGrams(f.text, func(gram string) {
		if _, known := f.grams[gram]; !known {
			f.grams[gram] = &index.TokenFreq{Term: []byte(gram)} // of frequency 0: no norm is written either
		}
	})
}

func (f *bleveField) Options() index.FieldIndexingOptions {
	return index.IndexField | index.SkipFreqNorm
}

func (f *bleveField) Size() int                                        { return len(f.text) }
func (f *bleveField) Name() string                                     { return f.name }
func (f *bleveField) Value() []byte                                    { return nil }
func (f *bleveField) ArrayPositions() []uint64                         { return nil }
func (f *bleveField) EncodedFieldType() byte                           { return 't' }
func (f *bleveField) AnalyzedLength() int                              { return len(f.grams) }
func (f *bleveField) AnalyzedTokenFrequencies() index.TokenFrequencies { return f.grams }
func (f *bleveField) NumPlainTextBytes() uint64                        { return uint64(len(f.text)) }

// bleveGrams calls f with every gram of text of one to three characters, repeated ones too.
func bleveGrams(text string, f func(gram string)) {
	var starts []int // of the field's last characters
	for i, r := range text {
		if r == separator {
			starts = starts[:0]
			continue
		}
		starts = append(starts[max(0, len(starts)-maxExact+1):], i)
		for _, start := range starts {
			f(text[start : i+utf8.RuneLen(r)])
		}
	}
}

// bleveNeedle is the grams that a text with needle in it has: the needle itself when it is short, else
// its longest grams.
func bleveNeedle(needle string) (grams []string) {
	if utf8.RuneCountInString(needle) <= maxExact {
		return []string{needle}
	}
	bleveGrams(needle, func(gram string) {
		if utf8.RuneCountInString(gram) == maxExact && !slices.Contains(grams, gram) {
			grams = append(grams, gram)
		}
	})
	return grams
}

// newBleve is an index that is closed with the test.
func newBleve(t interface {
	Fatal(...any)
	Error(...any)
	Cleanup(func())
}, dir string,
) *bleveIndex {
	x, err := openBleve(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.close(); err != nil {
			t.Error(err)
		}
	})
	return x
}
