package site

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// worst is n entries that take as many bytes as entries can: everything is escaped or percent-encoded.
func worst(n int, reason func(i int) string) []events.Data {
	out := make([]events.Data, n)
	for i := range out {
		e := person(events.Scammers, fmt.Sprintf("%064d", i), strings.Repeat("𝄞", 60)+fmt.Sprintf("%04d", i),
			strings.Repeat(`"`, 196)+fmt.Sprintf("%04d", i), reason(i), i%2 == 0, events.Proofs{ID: strings.Repeat("p", 64)}, 1)
		e.ReportID = strings.Repeat("'", 64)
		out[i] = e
	}
	return out
}

// A list shows all entries of a page, however long they are, with an excerpt of each.
func TestLongestLists(t *testing.T) {
	w := newWorld(t, full(), worst(60, func(int) string { return strings.Repeat(`"`, 20000) })...)
	page := w.list(t, readmodel.ListQuery{List: events.Scammers, Limit: 60, Search: strings.Repeat(`"`, 90)})
	if n := len(elements(t, page, "h3")); n != 60 || len(page) > 400_000 {
		t.Errorf("%d entries in %d bytes", n, len(page))
	}
}

// Paging ends where the API's does, and says so instead of linking to an error.
func TestPagingEnds(t *testing.T) {
	for skip, want := range map[int]string{19970: "20000", 19971: "", 20000: ""} {
		p := newPaging(skip, 30, 30, 30000, bounds.MaxSkip, strconv.Itoa)
		if p.Older != want || (p.Unreachable > 0) != (want == "") {
			t.Errorf("skip %d: next %q, too far %v", skip, p.Older, p.Unreachable > 0)
		}
	}
}

func seenIn(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}
