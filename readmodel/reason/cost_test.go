package reason

import (
	"strings"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// maxTime bounds the CPU time of a reason (events/CONTRACT.md#mapping).
const maxTime = 100 * time.Millisecond

// TestTime holds the CPU time of the longest reasons that cost most to its bound.
func TestTime(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("the race detector takes time of its own")
	}
	r := NewRenderer()
	for _, reason := range knownHostiles() {
		holdTime(t, r, reason)
	}
}

// TestTimeOfPairs does so with each pair of markers.
func TestTimeOfPairs(t *testing.T) {
	eventstest.Long(t)
	r := NewRenderer()
	for _, opener := range markers() {
		for _, line := range markers() {
			half := events.MaxReason/2 - 10
			holdTime(t, r, strings.Repeat(opener, half/len(opener))+"a\n"+strings.Repeat(line, half/len(line))+"\n\n> x")
		}
	}
}

// holdTime renders a reason until it takes little enough: the machine does other things.
func holdTime(t *testing.T, r *Renderer, reason string) {
	t.Helper()
	least := time.Hour
	for range 10 {
		begun := eventstest.CPUTime()
		r.HTML(reason)
		if least = min(least, eventstest.CPUTime()-begun); least <= maxTime {
			return
		}
	}
	t.Errorf("%v of CPU time, want at most %v: %.20q…%.20q", least, maxTime, reason, reason[len(reason)-20:])
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
		rest(strings.Repeat("[a](", 1250), "x"), rest(strings.Repeat("*a ", 3000), "a_ "), rest(strings.Repeat("![a", 3000), "](x) "),
		rest("", "http://_"), rest("", "http://a.pl<b>"), rest("", "http://a"), rest("", "http://("), rest("", "https://&"),
	}
}

// BenchmarkHostile renders the costliest reasons.
func BenchmarkHostile(b *testing.B) {
	r := NewRenderer()
	for _, reason := range knownHostiles() {
		b.Run(strings.Join(strings.Fields(reason[:6]+"~"+reason[len(reason)-6:]), "."), func(b *testing.B) {
			start := eventstest.CPUTime()
			for b.Loop() {
				r.HTML(reason)
			}
			b.ReportMetric(float64(eventstest.CPUTime()-start)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
