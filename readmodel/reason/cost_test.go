package reason

import (
	"cmp"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

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

// costOf returns the memory that a rendering takes.
func costOf(r *Renderer, reason string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.HTML(reason)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestCost ranks all pairs of markers by the memory that a short reason of them takes, and of the worst
// holds that of the longest reason: it is linear, as the time is, which .ci/nightly measures.
func TestCost(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("the race detector takes memory of its own")
	}
	const short = 2000
	r := NewRenderer()
	r.HTML("x") // the parser's tables
	all := hostiles()
	cost := map[hostile]uint64{}
	for _, h := range all {
		cost[h] = costOf(r, h.reason(short))
	}
	slices.SortFunc(all, func(a, b hostile) int { return cmp.Compare(cost[b], cost[a]) })
	for _, worst := range all[:40] {
		part, whole := costOf(r, worst.reason(events.MaxReason/4)), costOf(r, worst.reason(events.MaxReason))
		if whole > 8*part+1<<20 || whole > 4000*events.MaxReason {
			t.Errorf("%q × n, %q × m: %d bytes, %d for a quarter", worst.opener, worst.line, whole, part)
		}
	}
	for _, reason := range knownHostiles() {
		if memory := costOf(r, reason); memory > 4000*events.MaxReason {
			t.Errorf("%.20q…%.20q: %d bytes", reason, reason[len(reason)-20:], memory)
		}
	}
}

// TestRoom fills the longest reason with markers that each cost what lies before or after them. What
// follows is text: goldmark has not been asked about it.
func TestRoom(t *testing.T) {
	r := NewRenderer()
	counts := regexp.MustCompile(`<strong>b</strong>|<a [^>]*>b</a>`)
	for marker, last := range map[string]string{"*a ": "**b**", "] ": "[b](http://b.pl)", "[a]( ": "[b](http://b.pl)"} {
		if got := r.HTML(marker + last); !counts.MatchString(got) {
			t.Errorf("after one %q: %s", marker, got)
		}
		if counts.MatchString(r.HTML(strings.Repeat(marker, (events.MaxReason-len(last))/len(marker)) + last)) {
			t.Errorf("%s counts after as many %q as there can be", last, marker)
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
		if memory := costOf(r, reason); memory > 4000*size {
			t.Errorf("%d bytes: %q", memory, reason)
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
