package readmodel

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
)

// visibleText is a rendered reason as its reader sees it: without markup, block boundaries and
// breaks being white space (API contract, lists: search).
func visibleText(page []byte) string {
	var b strings.Builder
	b.Grow(len(page))
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.TextToken:
			b.Write(z.Text())
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			if name, _ := z.TagName(); !inline(string(name)) {
				b.WriteByte(' ')
			}
		}
	}
}

// inline says whether a tag of a rendered reason leaves its surroundings on one line.
func inline(tag string) bool {
	switch tag {
	case "a", "code", "del", "em", "strong":
		return true
	default:
		return false
	}
}
