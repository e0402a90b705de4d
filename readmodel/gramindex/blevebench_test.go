package gramindex

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"example.org/registry/readmodel/usual"
)

// benchDocs is how many entries are measured, benchBatch how many of them bleve gets at a time.
const (
	benchDocs  = 20_000
	benchBatch = 1000
)

// entries are texts of a usual size: a name, an identifier, and words of a usual distribution, the first
// ones in most of them.
func entries(n int) []doc {
	r := usual.New(rand.New(rand.NewPCG(7, 7)))
	docs := make([]doc, n)
	for i := range docs {
		reason, name := r.Reason(), r.Name()
		docs[i] = doc{fmt.Sprintf("%s\n%d", name, 100000000000000000+r.Int64N(8e17)), reason}
	}
	return docs
}

// BenchmarkAgainstBleve measures blocks and what they stand in for with the same texts, in one run. The
// times are the processor's, of all goroutines: bleve persists and merges in its own.
func BenchmarkAgainstBleve(b *testing.B) {
	docs := entries(benchDocs)
	b.Run("Index/of=bleve", func(b *testing.B) { indexing(b, func() int { return int(bleveOf(b, docs).bytes()) }) })
	b.Run("Index/of=blocks", func(b *testing.B) { indexing(b, func() int { return size(blocksOf(b, docs)) }) })
	x, blocks := bleveOf(b, docs), blocksOf(b, docs)
	if err := x.stop(); err != nil { // no more merging while others are measured
		b.Fatal(err)
	}
	for _, ask := range []struct {
		name    string
		needles []string
	}{
		{"Rare", rare(docs)},
		{"WordInMany", []string{"discord", "konto", "kupujący", "oszust"}},
		{"TwoCharacters", strings.Fields("zł ka gh 12 xx ło")},
	} {
		b.Run(ask.name+"/of=bleve", func(b *testing.B) {
			finding(b, ask.needles, func(needle string, found []uint32) ([]uint32, error) { return x.find(All, needle, found) })
		})
		b.Run(ask.name+"/of=blocks", func(b *testing.B) {
			finding(b, ask.needles, func(needle string, found []uint32) ([]uint32, error) { return findIn(blocks, needle, found) })
		})
	}
}

// rare is parts of names and identifiers.
func rare(docs []doc) (needles []string) {
	for i := 0; i < len(docs); i += len(docs) / 32 {
		name, id, _ := strings.Cut(docs[i].names, "\n")
		needles = append(needles, name, id[:9])
	}
	return needles
}

// bleveOf is an index of docs, all of it on disk.
func bleveOf(b *testing.B, docs []doc) *bleveIndex {
	x, persisted := newBleve(b, b.TempDir()), make(chan error, 1)
	for at := 0; at < len(docs); at += benchBatch {
		var last func(error)
		if at+benchBatch >= len(docs) {
			last = func(err error) { persisted <- err }
		}
		if err := x.add(at, docs[at:min(at+benchBatch, len(docs))], last); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-persisted; err != nil {
		b.Fatal(err)
	}
	if err := x.snapshot(); err != nil {
		b.Fatal(err)
	}
	return x
}

func blocksOf(b *testing.B, docs []doc) (blocks []*Block) {
	dir := open(b)
	var builder Builder
	for at := 0; at < len(docs); at += BlockLen {
		for slot, d := range docs[at:min(at+BlockLen, len(docs))] {
			if !builder.Add(uint16(slot), d.text(), len(d.names)) {
				b.Fatal("full")
			}
		}
		blocks = append(blocks, keep(b, dir, &builder))
	}
	return blocks
}

func size(blocks []*Block) (bytes int) {
	for _, block := range blocks {
		bytes += block.Bytes()
	}
	return bytes
}

// findIn is to blocks what bleveIndex.find is to bleve.
func findIn(blocks []*Block, needle string, found []uint32) ([]uint32, error) {
	var s Set
	for i, block := range blocks {
		if err := block.Find(All, needle, &s); err != nil {
			return nil, err
		}
		s.Each(func(slot uint16) bool {
			found = append(found, uint32(i*BlockLen)+uint32(slot))
			return true
		})
	}
	return found, nil
}

// indexing measures making, which says how many bytes it made.
func indexing(b *testing.B, making func() int) {
	bytes, begun := 0, usual.Processor()
	for range b.N {
		bytes = making()
	}
	took := usual.Processor() - begun
	b.ReportMetric(float64(took.Nanoseconds())/1000/float64(b.N*benchDocs), "cpu-µs/entry")
	b.ReportMetric(float64(bytes)/benchDocs, "B/entry")
}

// finding measures find, needle after needle.
func finding(b *testing.B, needles []string, find func(needle string, found []uint32) ([]uint32, error)) {
	var found []uint32
	total, begun := 0, usual.Processor()
	for i := range b.N {
		var err error
		if found, err = find(needles[i%len(needles)], found[:0]); err != nil {
			b.Fatal(err)
		}
		total += len(found)
	}
	took := usual.Processor() - begun
	b.ReportMetric(float64(took.Nanoseconds())/1000/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(total)/float64(b.N), "found/op")
}
