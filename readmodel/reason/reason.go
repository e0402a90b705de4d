// Package reason renders the reasons of entries, which strangers write in Markdown, as HTML
// (events/CONTRACT.md#mapping). Start with Renderer.
//
// goldmark does the parsing. Markup may change how a text looks, never which letters and digits are
// read, nor where an address leads. reason_test.go tests these promises over generated Markdown:
//
//  1. The letters and digits of the text are those in the source, in order, without list numbers and
//     titles of links. A character reference counts as its character.
//  2. The text of a link is its address.
//  3. The HTML has only the elements p, br, hr, h1 to h6, ul, ol (start), li, blockquote, pre, code,
//     strong, em, del and a (href, rel), and only http, https and mailto addresses.
//  4. The time of rendering and the length of the HTML are bounded.
//
// Files: reason.go, markdown.go (goldmark's configuration), links.go, plain.go (marks on a letter).
package reason

import (
	stdhtml "html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
)

// The bounds of the HTML of a reason. They do not depend on time, so all replicas make the same HTML.
const (
	maxGrowth = 4        // bytes of HTML for each byte of the reason
	extraHTML = 16 << 10 // bytes of HTML that any reason may have in addition

	// maxMarkers is how many lines, brackets, and runs of characters of emphasis a reason may have. goldmark may
	// read everything before each of these runs, and looks at each list and quote that is open for each line.
	maxMarkers = 2000

	// maxLookAhead is how many lines goldmark may read to find the ends of links and code.
	maxLookAhead = 200_000
)

// Renderer renders reasons. One goroutine at a time may use it.
type Renderer struct{ md goldmark.Markdown }

// NewRenderer returns a Renderer.
func NewRenderer() *Renderer { return &Renderer{newMarkdown()} }

// lineEndings replaces the two other line endings of CommonMark by a line feed.
var lineEndings = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// HTML returns the HTML of a valid reason. If the HTML is too long, or would take too much work, HTML returns
// the reason as escaped text, markup included. The result depends on the reason alone.
func (r *Renderer) HTML(reason string) string {
	maxHTML := maxGrowth*len(reason) + extraHTML // Plain may make the reason longer
	reason = Plain(reason)
	if isParagraph(reason) { // goldmark takes four times as long
		return "<p>" + reason + "</p>\n"
	}
	return r.renderMarkdown(reason, maxHTML)
}

// isParagraph reports whether a reason has no markup: it is one line that begins with a letter, and has only
// characters that stand for themselves in Markdown and in HTML.
func isParagraph(reason string) bool {
	const markup = "\x00\t\n\v\f\r\\`*_~[]<>&\""
	first, _ := utf8.DecodeRuneInString(reason)
	hasMarkup := strings.ContainsAny(reason, markup) || strings.Contains(reason, "://") || strings.HasSuffix(reason, " ")
	return unicode.IsLetter(first) && !hasMarkup
}

// renderMarkdown returns the HTML of a reason that has been made plain, or its escaped text beyond maxHTML bytes.
func (r *Renderer) renderMarkdown(reason string, maxHTML int) string {
	reason = lineEndings.Replace(reason)
	if isCostly(reason) {
		return escapeText(reason)
	}

	// Without the trailing line feed the x of ~~~x is lost. The output is in memory, so there is no error.
	var html strings.Builder
	_ = r.md.Convert([]byte(reason+"\n"), &html)
	if html.Len() > maxHTML {
		return escapeText(reason)
	}

	// Plain has limited the marks on a letter. But references have become marks since then, and the markup that
	// separated marks is gone, so limit them again.
	return dropMarks(html.String())
}

func escapeText(reason string) string { return "<p>" + stdhtml.EscapeString(reason) + "</p>\n" }

// isCostly reports whether goldmark may take too long for a reason.
func isCostly(reason string) bool {
	lines := strings.Count(reason, "\n")
	brackets := strings.Count(reason, "[") + strings.Count(reason, "]")
	if lines+brackets+countRuns(reason, "*_~") > maxMarkers {
		return true
	}

	// Where a link or code has no end, goldmark reads everything after its start. 32 bytes take as long as a line.
	starts := strings.Count(reason, "](") + countRuns(reason, "`")
	return starts*(lines+len(reason)/32) > maxLookAhead
}

// countRuns returns the number of runs of one of the characters.
func countRuns(reason, characters string) int {
	n := 0
	last := rune(0)
	for _, c := range reason {
		if c != last && strings.ContainsRune(characters, c) {
			n++
		}
		last = c
	}
	return n
}

// Text returns the text of a rendered reason as a reader sees it: without markup, with white space for block
// boundaries and breaks (httpapi/CONTRACT.md#search). It needs no HTML parser: in the HTML of a Renderer, every <
// opens a tag, and every > in an attribute is escaped.
func Text(rendered string) string {
	var b strings.Builder
	b.Grow(len(rendered))
	for {
		text, rest, isTagged := strings.Cut(rendered, "<")
		b.WriteString(stdhtml.UnescapeString(text))
		if !isTagged {
			return strings.TrimSpace(b.String())
		}

		var tag string
		tag, rendered, _ = strings.Cut(rest, ">")
		name, _, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
		switch name {
		case "a", "code", "del", "em", "strong": // the text goes on in the line
		default:
			b.WriteByte(' ')
		}
	}
}
