package ranked

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// BenchmarkRanked builds one index for each size, and asks it: -bench 'Ranked/n=100000$'.
func BenchmarkRanked(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			r, texts := filled(b, n)
			began, cpu := time.Now(), eventstest.CPUTime()
			r.start()
			defer func() { r.stop() }()
			for r.engine.index.Load() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			took := time.Since(began)
			b.Run("Build", func(b *testing.B) {
				b.ReportMetric(float64(n)/took.Seconds(), "entries/s")
				b.ReportMetric(float64((eventstest.CPUTime()-cpu).Microseconds())/float64(n), "cpu-µs/entry")
				b.ReportMetric(float64(diskBytes(r.dir))/float64(n), "disk-B/entry")
			})
			b.Run("Reopen", func(b *testing.B) {
				r.stop()
				began := time.Now()
				r.start()
				for r.engine.index.Load() == nil {
					time.Sleep(time.Millisecond)
				}
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms")
			})
			word := func() string { return strings.Fields(texts.Reason())[0] }
			for _, c := range []struct {
				name     string
				question func() string
			}{
				{"Name", texts.Name},
				{"Word", word},
				{"TwoWords", func() string { return word() + " " + word() }},
				{"Common", func() string { return "oszust" }},
				{"TwoCommon", func() string { return "oszust konto" }},
				{"EightCommon", func() string { return "oszust konto nitro discord kupujący paysafecard serwer phishing" }},
				{"Suggest", func() string { w := []rune(word()); w[len(w)/2] = 'q'; return string(w) }},
				{"Letters", func() string { return "a b c d e f g h i j k l m n o p q r s t u v w x y z" }},
				{"Repeated", func() string { return strings.Repeat("ab", 50) }},
			} {
				b.Run(c.name, func(b *testing.B) { r.ask(b, c.question) })
			}
		})
	}
}

// filled is a registry of n entries of realistic texts.
func filled(b testing.TB, n int) (*registry, *eventstest.Texts) {
	r := newRegistry(b, b.TempDir())
	texts := eventstest.NewTexts(rand.New(rand.NewPCG(1, 2)))
	r.model.BeginBulk()
	for i := range n {
		r.apply(events.Entry{Revision: 1, List: events.Lists()[min(i%20/8, 2)], EntryID: fmt.Sprintf("%024x", i*2654435761), ChatID: fmt.Sprintf("9%017d", i*7919),
			Name: texts.Name(), Reason: texts.Reason(), Verified: i%3 > 0, ReportID: fmt.Sprint("R-", i), ReportedAt: eventstest.Start().Add(time.Duration(i) * time.Minute)})
	}
	r.model.EndBulk()
	return r, texts
}

// ask reports percentiles of the time of an answer with its page of 20, and its CPU time.
func (r *registry) ask(b *testing.B, question func() string) {
	v, cpu := r.model.View(), eventstest.CPUTime()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := r.engine.Search(context.Background(), v, readmodel.RankedQuery{Words: question(), Limit: 20}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	b.ReportMetric(float64((eventstest.CPUTime()-cpu).Microseconds())/1000/float64(len(took)), "cpu-ms")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

func diskBytes(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil // a file may have gone
	})
	return bytes
}
