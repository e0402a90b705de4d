// Package reason renders the reasons of entries, which strangers write in Markdown, as HTML
// (events/CONTRACT.md#mapping). Start with Renderer.
//
// Markup may change how a text looks, never which letters and digits are read, nor where an address
// leads. goldmark does the parsing. markdown.go leaves out its parsers of what makes text disappear
// (HTML blocks, link reference definitions), and narrows those of lists, emphasis and raw HTML.
// links.go decides what is a link. plain.go bounds the marks on a letter, finds the text of HTML, and
// has the list of tags that the renderer writes and the site allows.
//
// The promises, which reason_test.go tests over generated Markdown:
//
//  1. The letters and digits of the text are those of the source, in order, without list numbers,
//     tags of the list droppedTags and addresses of links that have a text of their own. A character
//     reference counts as its character.
//  2. A link whose text looks like an address leads there.
//  3. Time and memory are linear in the reason; so is the HTML (maxHTML).
//  4. The HTML has only the elements and attributes of Elements.
package reason

import (
	"bufio"
	"bytes"
	stdhtml "html"
	"strings"

	"github.com/yuin/goldmark"

	"example.org/registry/events"
)

// The bounds of the HTML of a reason. They count input and output, never time, so that replicas
// agree.
const (
	maxGrowth = 4        // bytes of HTML for each byte of the reason, character references apart
	frameHTML = 16 << 10 // bytes of HTML more

	// references is how many bytes character references may add for each byte of a reason: 5 in the
	// text (&quot;) and 4 in an address (&amp;).
	references = 9
)

// MaxHTML bounds the HTML of any reason in bytes. Other bounds follow from it: the largest response
// that a mirror reads, the largest ratio of an archive and the number of parts of a page.
const MaxHTML = (maxGrowth+references)*events.MaxReason + frameHTML

// maxHTML returns the bound for a reason of size bytes.
func maxHTML(size int) int { return maxGrowth*size + frameHTML }

// Renderer renders reasons. It reuses its buffers, so one goroutine at a time may use it.
type Renderer struct {
	md   goldmark.Markdown
	left *room
	out  bytes.Buffer
	w    *bufio.Writer // onto out; goldmark would make its own otherwise
}

// NewRenderer returns a Renderer.
func NewRenderer() *Renderer {
	r := &Renderer{left: &room{}}
	r.md = newMarkdown(r.left)
	r.w = bufio.NewWriter(&r.out)
	return r
}

// lineEndings makes one of CommonMark's three.
var lineEndings = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// HTML returns the HTML of a valid reason. If it exceeds maxHTML, HTML returns the reason as escaped
// text, markup included. It depends on the reason alone.
func (r *Renderer) HTML(reason string) string {
	reason = lineEndings.Replace(Plain(reason))
	r.out.Reset()
	r.w.Reset(&r.out)
	*r.left = fullRoom
	_ = r.md.Convert([]byte(reason+"\n"), r.w) // to a buffer, so there is no error; without \n, ~~~x loses x
	_ = r.w.Flush()
	if unreferenced(r.out.Bytes()) > maxHTML(len(reason)) {
		return "<p>" + stdhtml.EscapeString(reason) + "</p>\n"
	}
	return withoutMarks(r.out.String()) // character references may have added some
}

// unreferenced returns the length of html, each character reference counted as one byte.
func unreferenced(html []byte) int {
	n := len(html)
	for {
		at := bytes.IndexByte(html, '&')
		if at < 0 {
			return n
		}
		html = html[at:]
		end := bytes.IndexByte(html, ';')
		n, html = n-end, html[end:]
	}
}

// Text returns the text of a rendered reason as a visitor sees it: without markup, with white space
// for block boundaries and breaks (httpapi/CONTRACT.md#search). rendered is HTML of a Renderer, in
// which every < opens a tag and every > in an attribute is escaped, so no HTML parser is needed.
func Text(rendered string) string {
	var b strings.Builder
	b.Grow(len(rendered))
	for {
		text, rest, tagged := strings.Cut(rendered, "<")
		b.WriteString(stdhtml.UnescapeString(text))
		if !tagged {
			return strings.TrimSpace(b.String())
		}
		var tag string
		tag, rendered, _ = strings.Cut(rest, ">")
		if name, _, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " "); !Inline(name) {
			b.WriteByte(' ')
		}
	}
}
