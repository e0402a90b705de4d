package ranked

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/benchtext"
)

// filled is a registry of n entries of realistic texts.
func filled(b testing.TB, n int) (*registry, *benchtext.Texts) {
	r := newRegistry(b, b.TempDir())
	r.pause = 0 // the product's
	texts := benchtext.New(rand.New(rand.NewPCG(1, 2)))
	r.model.BeginBulk()
	for i := range n {
		r.apply(anEntry(texts, i))
	}
	r.model.EndBulk()
	return r, texts
}

func anEntry(texts *benchtext.Texts, i int) events.Entry {
	list := events.Lists()[min(i%20/8, 2)]
	return events.Entry{Revision: 1, List: list, EntryID: fmt.Sprintf("%024x", i*2654435761), ChatID: fmt.Sprintf("9%017d", i*7919), Name: texts.Name(),
		Reason: texts.Reason(), Verified: i%3 > 0, ReportID: fmt.Sprint("R-", i), ReportedAt: eventstest.Start().Add(time.Duration(i) * time.Minute)}
}

// BenchmarkRanked builds one index for each size, and asks it: -bench 'Ranked/n=100000$'. Numbers
// of questions are milliseconds of one answer with its page of 20.
func BenchmarkRanked(b *testing.B) {
	for _, n := range []int{100_000, 300_000, 1_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			r, texts := filled(b, n)
			before := heap()
			began, cpu := time.Now(), benchtext.CPUTime()
			r.start()
			defer func() { r.stop() }()
			r.current().Release()
			took := time.Since(began)
			b.Run("Build", func(b *testing.B) {
				b.ReportMetric(float64(n)/took.Seconds(), "entries/s")
				b.ReportMetric(float64((benchtext.CPUTime()-cpu).Microseconds())/float64(n), "cpu-µs/entry")
				r.settle(b)
				b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
				b.ReportMetric(float64(diskBytes(b, r.dir))/float64(n), "disk-B/entry")
				a := r.current()
				b.ReportMetric(float64(len(a.parts)), "segments")
				a.Release()
			})
			b.Run("Reopen", func(b *testing.B) {
				r.stop()
				began := time.Now()
				r.start()
				r.current().Release()
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms")
			})
			words := func() string { return strings.Fields(texts.Reason())[0] }
			b.Run("TwoWords", func(b *testing.B) { r.ask(b, func() string { return words() + " " + words() }) })
			b.Run("OneWord", func(b *testing.B) { r.ask(b, words) })
			b.Run("Common", func(b *testing.B) { r.ask(b, func() string { return "oszust konto" }) })
			b.Run("TenCommon", func(b *testing.B) {
				r.ask(b, func() string { return "oszust konto nitro discord kupujący paysafecard serwer zł phishing token" })
			})
			b.Run("Suggest", func(b *testing.B) {
				r.ask(b, func() string {
					for {
						if w := []rune(words()); len(w) >= oneEdit {
							w[len(w)/2] = 'q'
							return string(w)
						}
					}
				})
			})
			for name, q := range badInput() {
				b.Run("Bad/"+name, func(b *testing.B) { r.ask(b, func() string { return q }) })
			}
			b.Run("Changes", func(b *testing.B) { r.changes(b, texts, n) })
		})
	}
}

// badInput are queries that must cost nearly nothing.
func badInput() map[string]string {
	var many []string
	for i := range 33 {
		many = append(many, string(rune('a'+i%26))+string(rune('a'+i/26)))
	}
	return map[string]string{
		"stop words": "i się na w z do", "punctuation": `+-"*~^:()/`, "repeated": strings.Repeat("a", 100), "pairs": strings.Repeat("ab", 50),
		"many": strings.Join(many, " "), "emoji": strings.Repeat("😀", 50), "scripts": "оszust оszusт ΟSZUST oszust۱", "long typo": "paysafecardpaysafecardpaysafecardpaysafe",
		"letters": "a b c d e f g h i j k l m n o p q r s t u v w x y z", "common": "oszust konto nitro discord serwer zł phishing token przelew kupujący nie",
	}
}

// ask reports percentiles of the time of an answer.
func (r *registry) ask(b *testing.B, question func() string) {
	a := r.current()
	defer a.Release()
	v := r.model.View()
	var took []time.Duration
	for b.Loop() {
		q := readmodel.RankedQuery{Words: question(), Limit: 20}
		began := time.Now()
		if _, err := a.Search(context.Background(), v, q); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	for name, at := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99, "max-ms": 1} {
		b.ReportMetric(float64(took[min(len(took)-1, int(at*float64(len(took))))].Microseconds())/1000, name)
	}
}

// changes reports how much of a CPU a thousand changes a second take, everything included.
func (r *registry) changes(b *testing.B, texts *benchtext.Texts, n int) {
	const seconds = 8
	made := make([]events.Data, 1000*seconds)
	for i := range made {
		made[i] = anEntry(texts, texts.IntN(n))
	}
	var records [][]readmodel.Record
	for i := 0; i < len(made); i += 20 {
		var some []readmodel.Record
		for _, d := range made[i : i+20] {
			r.seq++
			some = append(some, r.renderer.Render(r.seq, d))
		}
		records = append(records, some)
	}
	began, cpu := time.Now(), benchtext.CPUTime()
	for i, some := range records {
		time.Sleep(time.Until(began.Add(time.Duration(i) * 20 * time.Millisecond)))
		r.model.Apply(some, some[len(some)-1].Sequence)
	}
	r.current().Release()
	b.ReportMetric((benchtext.CPUTime()-cpu).Seconds()/time.Since(began).Seconds()*100, "cpu-%")
	b.ReportMetric(time.Since(began).Seconds()-seconds, "s-behind")
}

// settle waits until bleve merges and writes nothing any more.
func (r *registry) settle(b testing.TB) {
	last, still := int64(-1), 0
	for deadline := time.Now().Add(time.Minute); still < 8 && time.Now().Before(deadline); time.Sleep(250 * time.Millisecond) {
		if now := diskBytes(b, r.dir); now == last {
			still++
		} else {
			last, still = now, 0
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func diskBytes(b testing.TB, dir string) (bytes int64) {
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
