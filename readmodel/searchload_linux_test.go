package readmodel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/benchtext"
)

// BenchmarkDifferent asks ten thousand different things in a row, in every order and at any page,
// most of them hostile. ns/op is for all of them.
func BenchmarkDifferent(b *testing.B) {
	m := wordy(100_000)
	defer m.Close()
	v, r := m.View(), rand.New(rand.NewPCG(3, 4))
	for range b.N {
		before := liveHeap()
		var took []time.Duration
		for i := range 10_000 {
			q := readmodel.ListQuery{List: events.Lists()[i%2], Search: different(r, v, i), Sort: readmodel.Sort(r.IntN(6)), Skip: r.IntN(2) * r.IntN(20_000), Limit: 1 + r.IntN(60)}
			begun := time.Now()
			if _, err := v.List(context.Background(), q); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begun))
		}
		reportTimes(b, "", took)
		b.ReportMetric(float64(int64(liveHeap())-int64(before))/(1<<20), "MiB-heap-grown")
	}
}

// different is a search unlike the ones before, of nine kinds.
func different(r *rand.Rand, v *readmodel.View, i int) string {
	row := v.Row(readmodel.NewRowRef(i%2, r.Uint32N(25_000)))
	some := strings.Fields("oszust konto nitro discord kupujący ka mi ro")[r.IntN(8)]
	switch i % 9 {
	case 0:
		return strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(100))
	case 1:
		return strings.Repeat(some, 1+r.IntN(100/len(some)))
	case 2: // anything
		chars := make([]rune, 100)
		for j := range chars {
			chars[j] = rune(' ' + r.IntN(0xd000))
		}
		return string(chars)
	case 3:
		return fmt.Sprintf(`.*%s{%d,}?|(%d)[^a]+\w$*~"`, some, i, i)
	case 4:
		return some + " " + string(rune('a'+r.IntN(26))) + string(rune('a'+r.IntN(26)))
	case 5:
		return fmt.Sprint(i % 1000)
	case 6:
		_, reason := row.Folded()
		return reason
	case 7:
		return nameOf(row)
	default:
		return sixLetters(r, row)
	}
}

// BenchmarkWhileChanging asks at a steady pace what nobody asked before, or asks the same again and
// again, in turns with nothing and with 1,000 entries a second changing. It reports CPU time,
// which other processes do not disturb, and by the clock (at) what else keeps a reader waiting.
// ns/op says nothing.
func BenchmarkWhileChanging(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // the server's
	m := wordy(100_000)
	defer m.Close()
	for name, needle := range map[string]func(*rand.Rand, *readmodel.View) string{
		"Rare":       func(r *rand.Rand, v *readmodel.View) string { return someRow(r, v).ChatID()[:9] },
		"SixLetters": func(r *rand.Rand, v *readmodel.View) string { return sixLetters(r, someRow(r, v)) },
		"Two":        func(r *rand.Rand, v *readmodel.View) string { return sixLetters(r, someRow(r, v))[:2] },
		"Cached": func(r *rand.Rand, v *readmodel.View) string {
			return strings.Fields("oszust konto nitro discord serwer token")[r.IntN(6)]
		},
	} {
		b.Run(name, func(b *testing.B) {
			var took [2]paces
			for range b.N {
				changingInTurns(m, needle, &took)
			}
			idle, changing := reportTimes(b, "-idle", took[0].processor), reportTimes(b, "", took[1].processor)
			b.ReportMetric(float64(changing)/float64(idle), "times-idle")
			reportTimes(b, "-at-idle", took[0].clock)
			reportTimes(b, "-at", took[1].clock)
		})
	}
}

// changingInTurns measures for some seconds each, twice.
func changingInTurns(m *readmodel.Model, needle func(*rand.Rand, *readmodel.View) string, took *[2]paces) {
	var group sync.WaitGroup
	defer group.Wait()
	for range 2 {
		for turn, rate := range []int{0, 1000} {
			readmodel.WaitForIndex(m)
			runtime.GC()
			some, stop := context.WithTimeout(context.Background(), 5*time.Second)
			group.Go(func() { amendSteadily(some, m, rate) })
			pacedReaders(some, m, needle, &took[turn])
			stop()
		}
	}
}

// amendSteadily amends so many entries a second, a hundredth of them at a time.
func amendSteadily(ctx context.Context, m *readmodel.Model, rate int) {
	r, render := benchtext.New(rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))), readmodel.NewRenderer()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for rate > 0 && ctx.Err() == nil {
		<-tick.C
		v := m.View()
		seq := v.Sequence()
		var records []readmodel.Record
		for range rate / 100 {
			seq++
			old := someRow(r.Rand, v)
			_, reason := old.Folded()
			records = append(records, render.Render(seq, events.Entry{
				Revision: 1,
				List:     events.Scammers, EntryID: strings.Clone(old.ID()), ChatID: strings.Clone(old.ChatID()), Name: r.Name(),
				Reason: strings.Clone(reason), Verified: r.IntN(3) > 0, ReportID: "r", ReportedAt: old.Reported(),
			}))
		}
		m.Apply(records, seq)
	}
}

// paces are the durations of searches.
type paces struct {
	mu               sync.Mutex
	processor, clock []time.Duration
}

// pacedReaders are four readers of fifty searches a second each.
func pacedReaders(ctx context.Context, m *readmodel.Model, needle func(*rand.Rand, *readmodel.View) string, took *paces) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				q := readmodel.ListQuery{List: events.Scammers, Search: needle(r, m.View()), Limit: 30}
				at, begun := time.Now(), threadTime()
				_, _ = m.View().List(context.Background(), q)
				processor, clock := threadTime()-begun, time.Since(at)
				took.mu.Lock()
				took.processor, took.clock = append(took.processor, processor), append(took.clock, clock)
				took.mu.Unlock()
			}
		})
	}
	group.Wait()
}

// threadTime is the CPU time of the calling thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// reportTimes reports median, 99th percentile, which it returns, and maximum in milliseconds.
func reportTimes(b *testing.B, of string, took []time.Duration) time.Duration {
	slices.Sort(took)
	ms := func(at int) float64 { return float64(took[at].Microseconds()) / 1000 }
	b.ReportMetric(ms(len(took)/2), "p50-ms"+of)
	b.ReportMetric(ms(len(took)*99/100), "p99-ms"+of)
	b.ReportMetric(ms(len(took)-1), "max-ms"+of)
	return took[len(took)*99/100]
}

func liveHeap() uint64 {
	var ms runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&ms)
	return ms.HeapAlloc
}
