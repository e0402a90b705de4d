package readmodel

import (
	"runtime"
	"strings"
	"testing"

	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel/benchtext"
)

// pieces are the markers of CommonMark and mixtures of them: hostile reasons repeat them.
func pieces() []string {
	return []string{
		"- ", "-\n", "1. ", "+ ", "* ", ">", "> ", "> - ", "> - 1. ", "-\t", "# ", "#\n", "```", "~~~\n", "    ", "\t", "---\n", "===\n", "\n", " \n", "x\n", "\\\n", "  \n",
		"*", "_", "**a ", "*a_ ", "*a**a ", "_a_", "~~", "~a ", "`", "`a``", "[", "]", "[a]", "[a] ", "[a](", "[a](<b", "[a](b \"", "[a](http://a)", "![", "![a](", "![a]", "[[]", "[a]: b\n", "<", ">", "<a ", "<a@b.pl>", "<http://a>",
		"<!--", "<?", "<![CDATA[", "<div>\n", "http://a ", "http://a.", "a@b ", "&", "&amp;", "&#1;", "\"", "\\", "(", ")", "ż", "\x01", "a",
	}
}

// openings returns beginnings of hostile reasons: definitions that later text repeats.
func openings(size int) []string {
	long := strings.Repeat("b", size/2)
	return []string{"", "[a]: http://a/" + long + "\n\n", "[a]: http://a '" + strings.Repeat("\"", size/2) + "'\n\n", "[a]: http://a/" + long[:size/20] + "\n\n"}
}

// eachHostile calls fn with every opener × n + line × m + tail of size bytes.
func eachHostile(size int, fn func(reason string)) {
	repeated := func(s string, room int) string { return strings.Repeat(s, max(room, 0)/len(s)) }
	for _, opening := range openings(size) {
		for _, p := range pieces() {
			fn(opening + repeated(p, size-len(opening)))
		}
	}
	for _, opener := range pieces() {
		for _, line := range pieces() {
			const tail = "\n\n> x"
			start := repeated(opener, size/2)
			fn(start + "a\n" + repeated(line, size-len(start)-len(tail)-2) + tail)
		}
	}
}

// counter counts the steps of a parser: what it reads and what it asks its context.
type counter struct {
	text.Reader
	parser.Context
	steps int
}

// PeekLine counts every block that looks at a line.
func (c *counter) PeekLine() ([]byte, text.Segment) {
	c.steps++
	return c.Reader.PeekLine()
}

// Get counts what inline parsers keep.
func (c *counter) Get(key parser.ContextKey) any {
	c.steps++
	return c.Context.Get(key)
}

// LastOpenedBlock counts the attempts to open a block.
func (c *counter) LastOpenedBlock() parser.Block {
	c.steps++
	return c.Context.LastOpenedBlock()
}

// cost is the cost of a rendering, which depends on the reason alone.
type cost struct{ steps, allocated, output int }

func costOf(m *markdown, reason string) cost {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := len(m.render(reason))
	runtime.ReadMemStats(&after)
	*m.room = roomFor(reason)
	c := &counter{Reader: text.NewReader([]byte(reason)), Context: parser.NewContext()}
	m.md.Parser().Parse(c, parser.WithContext(c))
	return cost{c.steps, int(after.TotalAlloc - before.TotalAlloc), out}
}

// checkCost holds a rendering to the bounds of time, memory and output, without a clock. Each is
// linear in the reason.
func checkCost(t testing.TB, m *markdown, reason string) cost {
	t.Helper()
	const maxSteps, maxAllocated = 150, 4000 // for each byte
	c, size := costOf(m, reason), len(reason)
	if c.steps > 1000+maxSteps*size || c.allocated > 256<<10+maxAllocated*size || c.output > maxHTML(size) {
		t.Errorf("%.30q…%.30q, %d bytes: %d steps, %d bytes allocated, %d bytes of HTML", reason, reason[max(0, size-30):], size, c.steps, c.allocated, c.output)
	}
	return c
}

// TestHostileCost generates texts whose parts are harmless by themselves.
func TestHostileCost(t *testing.T) {
	size := 2000
	if eventstest.RaceDetector {
		size = 500
	}
	m := newMarkdown()
	m.render("x") // the parser's tables
	var worst [3]cost
	var texts [3]string
	eachHostile(size, func(reason string) {
		c := checkCost(t, m, reason)
		for i, is := range []bool{c.steps > worst[0].steps, c.allocated > worst[1].allocated, c.output > worst[2].output} {
			if is {
				worst[i], texts[i] = c, reason
			}
		}
	})
	for i, of := range []string{"steps", "memory", "output"} {
		t.Logf("most %s: %.20q…%.20q: %+v", of, texts[i], texts[i][len(texts[i])*3/4:], worst[i])
	}
}

// TestHostileReasons holds the largest reasons to the bounds, those among them that stopped the
// registry before there were any.
func TestHostileReasons(t *testing.T) {
	m := newMarkdown()
	m.render("x")
	for _, reason := range hostileReasons() {
		checkCost(t, m, reason)
	}
}

func hostileReasons() []string {
	const size = 19_990
	rest := func(start, line string) string { return start + strings.Repeat(line, (size-len(start))/len(line)) }
	return []string{
		rest(strings.Repeat("- ", 3000)+"a\n", "\n") + "x",
		rest(strings.Repeat("> ", 3000)+"a\n", "a\n"),
		rest(strings.Repeat("- ", 3500)+"a\n", "x\n"),
		rest("[a]: http://a/"+strings.Repeat("b", 9900)+"\n\n", "[a] "),
		rest("[a]: http://a/ '"+strings.Repeat("\"", 9900)+"'\n\n", "[a] "),
		rest("[a]: http://a/"+strings.Repeat("b", 400)+"\n\n", "[a] "),
		strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		rest("", "[a]("), rest("", "> - 1. "), rest("", "*a_ "), rest("", "*a_"), rest("", strings.Repeat(">", 16)+"\n\n"),
		rest(strings.Repeat("[a](", 1250), "x"), rest(strings.Repeat("*a ", 3000), "a_ "),
	}
}

// FuzzMarkdownCost repeats what the fuzzer finds.
func FuzzMarkdownCost(f *testing.F) {
	f.Add("- ", "\n", "x", uint16(400))
	f.Add("[a]: http://a/bbbbbbbbbbbbbbbbb\n\n", "[a] ", "", uint16(1))
	f.Add("> ", "[a](", "](", uint16(50))
	m := newMarkdown()
	m.render("x")
	f.Fuzz(func(t *testing.T, opener, line, tail string, n uint16) {
		const size = 3000
		if opener == "" || line == "" || len(opener)+len(line)+len(tail) > size/2 {
			return
		}
		start := strings.Repeat(opener, min(int(n), size/2/len(opener)))
		reason := strings.ToValidUTF8(start+"a\n"+strings.Repeat(line, size/2/len(line))+tail, "")
		checkCost(t, m, reason)
		checkHarmless(t, reason, m.render(reason))
	})
}

// BenchmarkHostileMarkdown renders the costliest reasons.
func BenchmarkHostileMarkdown(b *testing.B) {
	m := newMarkdown()
	for _, reason := range hostileReasons() {
		b.Run(strings.Map(func(r rune) rune {
			if r <= ' ' {
				return '.'
			}
			return r
		}, reason[:5]+"~"+reason[len(reason)-5:]), func(b *testing.B) {
			b.ReportAllocs()
			start := benchtext.CPUTime()
			for b.Loop() {
				m.render(reason)
			}
			b.ReportMetric(float64(benchtext.CPUTime()-start)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
