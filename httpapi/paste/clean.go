package paste

import (
	"html"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/lookalike"
)

// emojiMark replaces an emoji written as a name and a number.
const emojiMark = "\uFFFC"

// cleaned is a text in NFKC, without invisible characters and without notation for programs:
// entities, escapes, the names of emoji, and characters that keep an address from being a link.
type cleaned struct {
	text string
	at   []int // position of each byte, and of the end, in the text as typed
}

// cleanedText cleans a text to at most MaxText code points. more reports whether the text goes on
// after cut, an offset in the text as typed.
func (rd *Reader) cleanedText(typed string) (c cleaned, cut int, more bool) {
	plain, at := rd.written(typed)
	var b strings.Builder
	var it norm.Iter
	it.InitString(norm.NFKC, plain)
	for n := 0; !it.Done(); {
		from := at[it.Pos()]
		for _, r := range string(it.Next()) {
			if lookalike.Invisible(r) {
				continue
			}
			if n++; n > MaxText {
				c.text, c.at = b.String(), append(c.at, from)
				return c, from, true
			}
			b.WriteRune(r)
			for range utf8.RuneLen(r) {
				c.at = append(c.at, from)
			}
		}
	}
	c.text, c.at = b.String(), append(c.at, len(typed))
	return c, len(typed), false
}

// written returns a text without notation for programs, and the original position of each byte.
func (rd *Reader) written(typed string) (plain string, at []int) {
	var b strings.Builder
	add := func(s string, from int, moves bool) {
		b.WriteString(s)
		for i := range len(s) {
			if moves {
				at = append(at, from+i)
			} else {
				at = append(at, from)
			}
		}
	}
	last := 0
	for _, m := range rd.shorthand.FindAllStringIndex(typed, -1) {
		add(typed[last:m[0]], last, true)
		add(rd.meaning(typed[m[0]:m[1]]), m[0], false)
		last = m[1]
	}
	add(typed[last:], last, true)
	return b.String(), append(at, len(typed))
}

// meaning returns the meaning of a piece of notation for programs.
func (rd *Reader) meaning(s string) string {
	switch {
	case s[0] == '<':
		return emojiMark
	case s[0] == '&':
		return html.UnescapeString(s)
	case s[0] == '%':
		plain, err := url.PathUnescape(s)
		if isOdd := func(r rune) bool { return unicode.IsControl(r) || r < utf8.RuneSelf && wordly(r) }; err != nil || !utf8.ValidString(plain) || strings.ContainsFunc(plain, isOdd) {
			return s // a percentage, say
		}
		return plain
	case strings.HasPrefix(strings.ToLower(s), "hxxp"):
		return "http" + s[len("hxxp"):]
	case strings.Contains(s, "/?"):
		return rd.asked(s)
	}
	return "."
}

// asked returns the search in an address of the site, a line for each field. It returns any other
// address, or one with further parameters, without escapes.
func (rd *Reader) asked(address string) string {
	full := address
	if !strings.Contains(full, "://") {
		full = "//" + full
	}
	u, err := url.Parse(full)
	if err == nil && rd.isOwn(u.Host) && u.Path == "/" && u.User == nil && u.Fragment == "" {
		q, err := url.ParseQuery(u.RawQuery)
		text := "\n" + strings.Join(q["search"], "\n") + "\n" + strings.Join(q["id"], "\n") + "\n"
		delete(q, "search")
		delete(q, "id")
		if err == nil && len(q) == 0 && utf8.ValidString(text) {
			return text
		}
	}
	if plain, err := url.PathUnescape(address); err == nil && utf8.ValidString(plain) {
		return plain
	}
	return address
}

// isOwn reports whether a host is the site's: that of its address or, if it has none, this machine.
// A missing host counts as the site's.
func (rd *Reader) isOwn(host string) bool {
	if strings.Trim(host, ".…") == "" {
		return true
	}
	if rd.own != "" {
		return strings.EqualFold(host, rd.own)
	}
	name, _, _ := strings.Cut(host, ":")
	return name == "localhost" || name == "127.0.0.1"
}
