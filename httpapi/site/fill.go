package site

import (
	"html/template"
	"slices"
	"strings"
)

// The rooms of a page in bytes, which is how it stays below MaxPage.
const (
	frameRoom = 14_000 // for everything but entries: the frame, the forms, the longest search in every link
	entryRoom = MaxPage - frameRoom
	minReason = 240   // what is left of a reason at least, before there are fewer entries on the page instead
	maxReason = 1_600 // what a page with many entries shows of one reason at most
)

// mark stands in a rendered entry where its reason goes, and around the link to the rest of it. NUL is in no
// text: events with one are rejected.
const mark = "\x00"

// piece is a rendered entry, in the parts that a page is filled with.
type piece struct {
	head, more, tail string // more is only there where the reason is cut
	reason           *text
}

func newPiece(rendered string, reason *text) piece {
	parts := strings.SplitN(rendered, mark, 3)
	return piece{parts[0], parts[1], parts[2], reason}
}

func (p *piece) fixed() int { return len(p.head) + len(p.more) + len(p.tail) }

// with is the entry with as much of its reason as fits into room.
func (p *piece) with(room int) string {
	if p.reason.size <= room {
		whole, _, _ := p.reason.part(place{}, p.reason.size)
		return p.head + whole + p.tail
	}
	cut, _, _ := p.reason.part(place{}, room)
	return p.head + cut + p.more + p.tail
}

// fill puts as many pieces into room as it holds with a readable stretch of each reason, and shares what
// is left: short reasons are whole, long ones are cut at the same length. An empty page has room for several of
// the longest entries.
func fill(pieces []piece, room int) (body template.HTML, shown int) {
	body, shown, _ = fillMost(pieces, room)
	return body, shown
}

// fillMost is fill, and how much of the room it took. Where room is short of one piece, none is shown.
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

// level is how much of each reason can be shown when minReason of each is, and room is left beyond that.
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
