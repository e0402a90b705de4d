package site

import (
	"html/template"
	"strconv"
	"strings"
)

// parts is where the reader of a very long reason is. The zero value: it is on the page whole.
type parts struct {
	Number, Of int
	Before     string // addresses; empty: none
	After      string
}

// whole is the page of a single entry: its reason, or the part of it with that number, the last one
// at most. link is the address of the page.
func whole(p *piece, number int, link string) (template.HTML, parts) {
	var cuts []string
	at, more := place{}, true
	for more && len(cuts) < MaxPart {
		var part string
		part, at, more = p.reason.part(at, entryRoom-p.fixed())
		cuts = append(cuts, part)
	}
	if len(cuts) == 1 {
		return template.HTML(p.head + cuts[0] + p.tail), parts{}
	}
	number = min(number, len(cuts))
	v := parts{Number: number, Of: len(cuts)}
	if number > 1 {
		v.Before = partLink(link, number-1)
	}
	if number < len(cuts) {
		v.After = partLink(link, number+1)
	}
	return template.HTML(p.head + cuts[number-1] + p.tail), v
}

func partLink(link string, number int) string {
	if number == 1 {
		return link
	}
	joint := "?"
	if strings.Contains(link, "?") {
		joint = "&"
	}
	return link + joint + "part=" + strconv.Itoa(number)
}
