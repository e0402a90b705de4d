package reason

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel/benchtext"
	"example.org/registry/readmodel/reason/reasontest"
)

// hostile is a reason of opener × n + line × m + tail.
type hostile struct{ opener, line, tail string }

func (h hostile) reason(size int) string {
	repeated := func(s string, room int) string { return strings.Repeat(s, max(room, 0)/len(s)) }
	start := repeated(h.opener, size/2)
	return start + "a\n" + repeated(h.line, size-len(start)-len(h.tail)-2) + h.tail
}

// hostiles are all pairs of markers, whether or not each is harmless by itself.
func hostiles() (all []hostile) {
	for _, opener := range reasontest.Markers() {
		for _, line := range reasontest.Markers() {
			all = append(all, hostile{opener, line, "\n\n> x"})
		}
	}
	return all
}

// costOf returns the CPU time of a rendering, the least of several, and the memory it takes.
func costOf(r *Renderer, reason string, tries int) (cpu time.Duration, memory uint64) {
	var before, after runtime.MemStats
	for i := range tries {
		runtime.ReadMemStats(&before)
		start := benchtext.CPUTime()
		r.HTML(reason)
		took := benchtext.CPUTime() - start
		runtime.ReadMemStats(&after)
		if memory = after.TotalAlloc - before.TotalAlloc; i == 0 || took < cpu {
			cpu = took
		}
	}
	return cpu, memory
}

// most is more than the contract's 50 ms, which the dearest reason takes half of: another program on
// the same processor may double it. What is not linear takes seconds.
const most = 200 * time.Millisecond

// TestCost ranks all pairs of markers by what a short reason of them costs, and holds the worst to
// the bounds: CPU time for the longest reason, and memory linear in its length.
func TestCost(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("the race detector takes the time")
	}
	const short = 2000
	r := NewRenderer()
	r.HTML("x") // the parser's tables
	type ranked struct {
		h   hostile
		cpu time.Duration
	}
	var all []ranked
	for _, h := range hostiles() {
		cpu, _ := costOf(r, h.reason(short), 1)
		all = append(all, ranked{h, cpu})
	}
	slices.SortFunc(all, func(a, b ranked) int { return int(b.cpu - a.cpu) })
	for i, worst := range all[:40] {
		quarter, part := costOf(r, worst.h.reason(events.MaxReason/4), 3)
		whole, memory := costOf(r, worst.h.reason(events.MaxReason), 3)
		if i < 5 {
			t.Logf("%q %q: %v, %v for a quarter, %d MiB", worst.h.opener, worst.h.line, whole, quarter, memory>>20)
		}
		if whole > most || memory > 8*part+1<<20 || memory > 4000*events.MaxReason {
			t.Errorf("%q × n, %q × m: %v, %v for a quarter; %d bytes, %d for a quarter", worst.h.opener, worst.h.line, whole, quarter, memory, part)
		}
	}
}

// TestCostOfKnown renders the longest reasons of those that stopped the registry once.
func TestCostOfKnown(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("the race detector takes the time")
	}
	r := NewRenderer()
	for _, reason := range knownHostiles() {
		if cpu, memory := costOf(r, reason, 3); cpu > most || memory > 4000*events.MaxReason {
			t.Errorf("%.20q…%.20q: %v, %d bytes", reason, reason[len(reason)-20:], cpu, memory)
		}
	}
}

func knownHostiles() []string {
	const size = events.MaxReason - 10
	rest := func(start, line string) string { return start + strings.Repeat(line, (size-len(start))/len(line)) }
	return []string{
		rest(strings.Repeat("- ", 3000)+"a\n", "\n") + "x",
		rest(strings.Repeat("> ", 3000)+"a\n", "a\n"),
		rest(strings.Repeat("- ", 3500)+"a\n", "x\n"),
		rest("a ", "~"), rest("a ", "["), rest("a ", "*"), rest("", "*_"), rest("a*", " *a*"),
		strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		rest("", "[a]("), rest("", "> - 1. "), rest("", "*a_ "), rest("", "*a_"), rest("", strings.Repeat(">", 16)+"\n\n"),
		rest(strings.Repeat("[a](", 1250), "x"), rest(strings.Repeat("*a ", 3000), "a_ "), rest(strings.Repeat("![a", 3000), "](x) "), rest("", "http://_"), rest("", "http://a.pl<b>"),
	}
}

// FuzzCost repeats what the fuzzer finds.
func FuzzCost(f *testing.F) {
	f.Add("- ", "\n", "x")
	f.Add("> ", "[a](", "](")
	f.Add("*a ", "a_ ", "")
	r := NewRenderer()
	f.Fuzz(func(t *testing.T, opener, line, tail string) {
		const size = 8000
		if opener == "" || line == "" || len(opener)+len(line)+len(tail) > size/2 {
			return
		}
		reason := strings.ToValidUTF8(hostile{opener, line, tail}.reason(size), "")
		if cpu, memory := costOf(r, reason, 1); memory > 4000*size || cpu > 200*time.Millisecond {
			t.Errorf("%v, %d bytes: %q", cpu, memory, reason)
		}
	})
}

// BenchmarkHostile renders the costliest reasons.
func BenchmarkHostile(b *testing.B) {
	r := NewRenderer()
	for _, reason := range knownHostiles() {
		b.Run(strings.Map(func(r rune) rune {
			if r <= ' ' {
				return '.'
			}
			return r
		}, reason[:5]+"~"+reason[len(reason)-5:]), func(b *testing.B) {
			b.ReportAllocs()
			start := benchtext.CPUTime()
			for b.Loop() {
				r.HTML(reason)
			}
			b.ReportMetric(float64(benchtext.CPUTime()-start)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
