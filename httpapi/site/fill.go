package site

import (
	"html/template"
	"slices"
	"strconv"
	"strings"

	"example.org/registry/httpapi/internal/bounds"
)

// The parts of MaxPage in bytes.
const (
	frameRoom = 14_000 // for everything but entries: the frame, the forms, the longest search in each link
	entryRoom = MaxPage - frameRoom
	pageRoom  = 6_000 // for everything but the reason on the page of one entry, beside the frame
	minReason = 240   // shown of each reason at least; if that does not fit, the page has fewer entries
	maxReason = 1_600 // shown of each reason at most, on a page with several entries
)

// mark stands in a rendered entry before and after the link to the rest of the reason; the reason
// goes in front of the first. No text contains NUL, because events with one are rejected.
const mark = "\x00"

// piece is a rendered entry, taken apart where its reason goes.
type piece struct {
	head, more, tail string // more is left out if the reason is whole
	reason           *text
}

func newPiece(rendered string, reason *text) piece {
	parts := strings.SplitN(rendered, mark, 3)
	return piece{parts[0], parts[1], parts[2], reason}
}

func (p *piece) fixed() int { return len(p.head) + len(p.more) + len(p.tail) }

// with returns the entry with as much of its reason as fits into room.
func (p *piece) with(room int) string {
	if p.reason.size <= room {
		whole, _, _ := p.reason.part(place{}, p.reason.size)
		return p.head + whole + p.tail
	}
	cut, _, _ := p.reason.part(place{}, room)
	return p.head + cut + p.more + p.tail
}

// fillMost puts as many pieces into room as fit with minReason of each reason, and shares out what
// is left: short reasons are whole, long ones are cut at the same length. It also returns how many
// bytes it used. If not even one piece fits, it shows none.
func fillMost(pieces []piece, room int) (body template.HTML, shown, used int) {
	var sizes []int
	for i := range pieces {
		need := pieces[i].fixed() + min(pieces[i].reason.size, minReason)
		if need > room {
			break
		}
		room -= need
		sizes = append(sizes, pieces[i].reason.size)
	}
	cut := min(level(sizes, room), maxReason)
	var b strings.Builder
	for i := range sizes {
		b.WriteString(pieces[i].with(cut))
	}
	return template.HTML(b.String()), len(sizes), b.Len()
}

// level returns how many bytes of each reason fit if minReason of each are shown anyway and room is
// left beyond.
func level(sizes []int, room int) int {
	sizes = slices.Sorted(slices.Values(sizes))
	at := minReason
	for i, size := range sizes {
		rest := len(sizes) - i
		if size <= at {
			continue
		}
		if (size-at)*rest > room {
			return at + room/rest
		}
		room -= (size - at) * rest
		at = size
	}
	return at
}

// parts says which part of a very long reason a page shows. The zero value: all of it.
type parts struct {
	Number, Of int
	Before     string // link; empty: none
	After      string
}

// whole renders a reason, or the part of that number if it is too long for a page; a number that is
// too high means the last one. link is the address of the page.
func whole(reason *text, number int, link string) (template.HTML, parts) {
	var cuts []string
	at, more := place{}, true
	for more && len(cuts) < bounds.MaxPart {
		var part string
		part, at, more = reason.part(at, entryRoom-pageRoom)
		cuts = append(cuts, part)
	}
	if len(cuts) == 1 {
		return template.HTML(cuts[0]), parts{}
	}
	number = min(number, len(cuts))
	v := parts{Number: number, Of: len(cuts)}
	if number > 1 {
		v.Before = partLink(link, number-1)
	}
	if number < len(cuts) {
		v.After = partLink(link, number+1)
	}
	return template.HTML(cuts[number-1]), v
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
