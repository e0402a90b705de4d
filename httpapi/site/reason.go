package site

import (
	"strings"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
)

// maxDepth is how deep elements of a reason may lie in each other: deeper ones are left out and their
// text stays. Nobody writes like that but who wants browsers to suffer.
const maxDepth = 12

// maxTag is the longest tag in bytes, which is that of a link: a longer one is left out, too.
const maxTag = 2048

// newPolicy allows what the renderer of readmodel emits, and nothing else. Headings become bold
// paragraphs in reasons, because the page's own headings are its outline.
func newPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li",
		"h1", "h2", "h3", "h4", "h5", "h6")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}

// text is the HTML of a reason made harmless, in pieces that a page can be filled with.
type text struct {
	tokens []html.Token
	size   int // bytes of the whole
}

// element is one that is open, and whether it is kept.
type element struct {
	name string
	kept bool
}

// beginning is as much of a reason's HTML as a page with many entries looks at.
func beginning(reason string) string {
	if len(reason) <= maxRead {
		return reason
	}
	end := maxRead
	for !utf8.RuneStart(reason[end]) {
		end--
	}
	if tag := strings.LastIndexByte(reason[:end], '<'); tag > maxRead/2 {
		end = tag
	}
	return reason[:end]
}

// maxRead is what beginning looks at in bytes: several times what such a page shows of a reason, so that it
// ends where nobody looks, and little enough for sixty reasons a page.
const maxRead = 4 * maxReason

// sanitise is the second look at a reason's HTML, the renderer's being the first. What it returns is
// well formed whatever it is given.
func sanitise(policy *bluemonday.Policy, reason string) *text {
	reason = strings.ReplaceAll(reason, "\x00", "") // no event has one; in a template it would be a mark to fill
	z := html.NewTokenizer(strings.NewReader(policy.Sanitize(reason)))
	t := &text{}
	var open []element
	for z.Next() != html.ErrorToken {
		tok := asParagraph(z.Token())
		switch {
		case tok.Type == html.StartTagToken && !void(tok.Data):
			e := element{tok.Data, len(open) < maxDepth && len(tok.String()) <= maxTag}
			if open = append(open, e); e.kept {
				t.add(tok)
			}
		case tok.Type == html.EndTagToken:
			open = t.close(open, tok.Data)
		default:
			t.add(tok)
		}
	}
	for len(open) > 0 {
		open = t.close(open, open[len(open)-1].name)
	}
	return t
}

func (t *text) add(tok html.Token) {
	t.tokens = append(t.tokens, tok)
	t.size += len(tok.String())
}

// close ends the innermost element if it is of that name.
func (t *text) close(open []element, name string) []element {
	last := len(open) - 1
	if last < 0 || open[last].name != name {
		return open
	}
	if open[last].kept {
		t.add(html.Token{Type: html.EndTagToken, Data: name})
	}
	return open[:last]
}

// asParagraph makes a heading of a reason a paragraph of its own look.
func asParagraph(tok html.Token) html.Token {
	if len(tok.Data) == 2 && tok.Data[0] == 'h' && tok.Data[1] >= '1' && tok.Data[1] <= '6' && tok.Type != html.TextToken {
		tok.Data, tok.Attr = "p", nil
		if tok.Type == html.StartTagToken {
			tok.Attr = []html.Attribute{{Key: "class", Val: "h"}}
		}
	}
	return tok
}

func void(element string) bool { return element == "br" || element == "hr" }

// part is the stretch of t from a place on that takes at most room bytes, its elements closed. more says
// whether anything is left, and next where. Words are kept together where there are any. The room must
// suffice for what is open at the place and a character: maxDepth tags, of which one is a link.
func (t *text) part(from place, room int) (part string, next place, more bool) {
	w := cutter{room: room}
	for _, tok := range t.tokens[:from.token] {
		w.pass(tok)
	}
	w.reopen()
	for i, tok := range t.tokens[from.token:] {
		at := place{from.token + i, 0}
		if i == 0 {
			at.byte = from.byte
		}
		if n := w.take(tok, at.byte); n >= 0 {
			return w.finish(), place{at.token, n}, true
		}
	}
	return w.finish(), place{}, false
}

// place is a position in a text: a token, and a byte of it where that is a text.
type place struct{ token, byte int }

// cutter writes tokens until there is no more room.
type cutter struct {
	out  strings.Builder
	open []html.Token // elements that are open at this point
	end  int          // bytes that closing them takes
	room int
}

// pass goes over a token of an earlier part.
func (w *cutter) pass(tok html.Token) {
	switch {
	case tok.Type == html.StartTagToken && !void(tok.Data):
		w.open = append(w.open, tok)
		w.end += len(tok.Data) + len("</>")
	case tok.Type == html.EndTagToken && len(w.open) > 0:
		w.end -= len(tok.Data) + len("</>")
		w.open = w.open[:len(w.open)-1]
	}
}

func (w *cutter) reopen() {
	for _, tok := range w.open {
		w.out.WriteString(tok.String())
	}
}

// take writes a token, its first skip bytes left out. It returns -1, or where in the token the room ended.
func (w *cutter) take(tok html.Token, skip int) int {
	if tok.Type == html.TextToken {
		return w.takeText(tok.Data, skip)
	}
	s := tok.String()
	if tok.Type != html.EndTagToken && w.left() < len(s)+len(tok.Data)+len("</>") {
		return 0
	}
	w.out.WriteString(s)
	w.pass(tok)
	return -1
}

// left is how many bytes there is still room for, besides the end tags.
func (w *cutter) left() int { return w.room - w.out.Len() - w.end }

func (w *cutter) takeText(data string, skip int) int {
	left, at, word := w.left(), skip, skip
	for at < len(data) {
		r, size := utf8.DecodeRuneInString(data[at:])
		if left -= escapedSize(r, size); left < 0 {
			break
		}
		if at += size; r == ' ' || r == '\n' {
			word = at
		}
	}
	if at == len(data) {
		w.out.WriteString(html.EscapeString(data[skip:]))
		return -1
	}
	if at-word < longWord && word > skip {
		at = word
	}
	w.out.WriteString(html.EscapeString(data[skip:at]))
	return at
}

// longWord is the length in bytes from which a word may be cut.
const longWord = 60

// escapedSize is how many bytes html.EscapeString makes of a character.
func escapedSize(r rune, size int) int {
	switch r {
	case '<', '>':
		return len("&lt;")
	case '&', '\'', '"', '\r':
		return len("&amp;")
	}
	return size
}

func (w *cutter) finish() string {
	for i := len(w.open) - 1; i >= 0; i-- {
		w.out.WriteString("</" + w.open[i].Data + ">")
	}
	return w.out.String()
}
