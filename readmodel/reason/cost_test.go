package reason

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// TestCostlyReasons renders the longest reasons of each kind that would take goldmark more than 100 ms of CPU time
// (events/CONTRACT.md#mapping): they become text. BenchmarkHostile measures those that remain.
func TestCostlyReasons(t *testing.T) {
	for _, reason := range []string{
		fill(strings.Repeat("- ", 3000)+"a\n", "\n") + "x",
		fill("", "*a_ "), fill("a*", " *a*"), fill("", "[a] "), fill(strings.Repeat("[", 9000), "]"),
		fill(strings.Repeat("[a](", 1250), "x"), fill("", "![a]("), fill("", "[a](b (c\n"),
		fill("", "\\```\n"), fill("", "\\``"),
	} {
		t.Run(nameOf(reason), func(t *testing.T) {
			isText := NewRenderer().HTML(reason) == escapeText(reason)
			require.True(t, isText, "rendered as Markdown")
		})
	}
}

// TestLongEvidence renders the longest lists that people write: hundreds of links and of ids in code.
func TestLongEvidence(t *testing.T) {
	for element, line := range map[string]string{
		"<a href":   "- [zrzut](https://i.imgur.example/a1B2c3D.png)\n",
		"<code":     "- `123456789012345678`\n",
		"<strong":   "1. **500 zł** w maju\n",
		"<blockquo": "> [21:37] Kamil: daj\n\n",
	} {
		require.Contains(t, NewRenderer().HTML(strings.Repeat(line, 200)), element)
	}
}

// fill returns the longest reason that begins with start and repeats line.
func fill(start, line string) string {
	return start + strings.Repeat(line, (events.MaxReason-len("x")-len(start))/len(line))
}

// nameOf returns the start and the end of a reason, without white space.
func nameOf(reason string) string {
	return strings.Join(strings.Fields(reason[:6]+"~"+reason[len(reason)-6:]), ".")
}

// BenchmarkHostile renders the costliest reasons: each is as long as it may be before it becomes text.
func BenchmarkHostile(b *testing.B) {
	repeat := strings.Repeat
	r := NewRenderer()
	for i, reason := range []string{
		repeat("- ", 3000) + "a\n" + repeat("\n", 1990) + "x", fill(repeat("- ", 3000)+"a\n", "xxxxxxxxxx\n"),
		fill(repeat("> ", 3000)+"a\n", "aaaaaaaaaa\n"), fill("", repeat(">", 20)+"\n\n"), fill("", "> - 1. "),
		fill(repeat("[a](", 310), "x"), fill(repeat("![a](", 310), "&oacute;"), repeat("[a](b (c\n", 360), repeat("\\```\n", 390),
		repeat("*a_ ", 990), fill(repeat("[", 990), "x")[:19000] + repeat("]", 990), fill("a ", "~"), fill("", "*"),
		repeat("http://_", 1990), fill("", "http://a.pl<b>"), fill("", "http://a"), fill("", "http://("), fill("", "https://&"),
	} {
		b.Run(fmt.Sprintf("%d.%s", i, nameOf(reason)), func(b *testing.B) {
			require.False(b, isCostly(reason))
			start := eventstest.CPUTime()
			for b.Loop() {
				r.HTML(reason)
			}
			b.ReportMetric(float64(eventstest.CPUTime()-start)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
