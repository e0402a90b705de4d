package site

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

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
