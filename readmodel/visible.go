package readmodel

import (
	"html"
	"strings"
)

// visibleText is a rendered reason as its reader sees it: without markup, block boundaries and
// breaks being white space (API contract, lists: search). page is what markdown rendered, where
// every < opens a tag and every > in an attribute is escaped, so no HTML parser is needed.
func visibleText(page string) string {
	var b strings.Builder
	b.Grow(len(page))
	for {
		text, rest, tagged := strings.Cut(page, "<")
		b.WriteString(html.UnescapeString(text))
		if !tagged {
			return strings.TrimSpace(b.String())
		}
		var tag string
		tag, page, _ = strings.Cut(rest, ">")
		if !inline(tag) {
			b.WriteByte(' ')
		}
	}
}

// inline says whether a tag of a rendered reason leaves its surroundings on one line.
func inline(tag string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
	switch name {
	case "a", "code", "del", "em", "strong":
		return true
	default:
		return false
	}
}
