package site

import (
	"strings"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
)

// maxDepth bounds how deeply elements are nested. Of deeper ones only the text stays; nobody nests
// like that except to hurt browsers.
const maxDepth = 12

// maxTag bounds a tag in bytes, which matters for links. A longer one is left out and its text
// stays.
const maxTag = 2048

// newPolicy allows what the renderer of readmodel emits, and nothing else.
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

// text is the harmless HTML of a reason, in tokens, so that it can be cut between them.
type text struct {
	tokens []html.Token
	size   int // bytes of the whole
}

// element is an open element. One that is not kept leaves its text only.
type element struct {
	name string
	kept bool
}

// beginning returns as much of a reason's HTML as a page with several entries looks at.
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

// maxExcerpt bounds an excerpt in code points.
const maxExcerpt = 280

// excerpt returns the beginning of a reason as text on one line.
func excerpt(reason string) (text string) {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(beginning(strings.ReplaceAll(reason, "\x00", ""))))
	n := 0
	for kind := z.Next(); kind != html.ErrorToken && n <= maxExcerpt; kind = z.Next() {
		if kind != html.TextToken {
			if name, _ := z.TagName(); !inline(string(name)) {
				b.WriteByte(' ')
			}
			continue
		}
		t := string(z.Text())
		b.WriteString(t) // Text has decoded it
		n += utf8.RuneCountInString(t)
	}
	text = strings.Join(strings.Fields(b.String()), " ")
	if utf8.RuneCountInString(text) <= maxExcerpt && n <= maxExcerpt {
		return text
	}
	runes := []rune(text)
	text = string(runes[:min(len(runes), maxExcerpt)])
	if space := strings.LastIndexByte(text, ' '); space > len(text)/2 {
		text = text[:space]
	}
	return strings.TrimRight(text, " ,.;:–-") + "…"
}

// inline reports whether an element does not begin a new line.
func inline(name string) bool {
	switch name {
	case "a", "strong", "em", "del", "code":
		return true
	}
	return false
}

// maxRead bounds beginning, in bytes: several times what such a page shows, so that its end is
// never seen, and little enough to sanitise sixty reasons a page.
const maxRead = 4 * maxReason

// sanitise drops everything from a reason's HTML that the policy does not allow. The result is well
// formed whatever the input. The renderer of readmodel has done this before; here it is done again.
func sanitise(policy *bluemonday.Policy, reason string) *text {
	reason = strings.ReplaceAll(reason, "\x00", "") // see mark
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

// close closes the innermost element if it has that name.
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

// asParagraph turns headings into bold paragraphs, because the page's own headings are its outline.
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

// part returns as much of t from a place on as fits into room bytes, with its elements closed. If
// more is left, it continues at next. Words stay whole if possible. The room must suffice for the
// elements that are open at the place (maxDepth tags, one of them a link) and one character.
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

// place is a position in a text: a token and, in text, a byte of it.
type place struct{ token, byte int }

// cutter writes tokens until the room is used up.
type cutter struct {
	out  strings.Builder
	open []html.Token // elements that are open at this point
	end  int          // bytes that their end tags take
	room int
}

// pass tracks the open elements over a token.
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

// take writes a token without its first skip bytes. It returns -1, or the byte of the token at
// which the room ended.
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

// left returns the room that is left, in bytes, besides the end tags.
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

// longWord is the length in bytes from which on a word may be cut.
const longWord = 60

// escapedSize returns how many bytes html.EscapeString makes of a character.
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
