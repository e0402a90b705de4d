package site

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// worst is n entries that take as many bytes as entries can: everything is escaped or
// percent-encoded.
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

// longReasons are of 20,000 bytes each, the contract's bound.
func longReasons() map[string]string {
	long := map[string]string{
		"words":  strings.Repeat("słowo ", 2857),
		"word":   strings.Repeat("x", 20000),
		"escape": strings.Repeat("&", 20000),
		"quotes": strings.Repeat(`"`, 20000),
		"em":     strings.Repeat("*a* ", 5000),
		"links":  strings.Repeat("<a@b.c>", 2857),
		"quoted": strings.Repeat(">", 19990) + " dno",
		"items":  strings.Repeat("- a\n", 5000),
		"nested": strings.Repeat("- ", 9990) + "dno",
		"href":   "[x](https://e.org/" + strings.Repeat("ą", 9900) + ")",
		"blocks": strings.Repeat("a\n\n", 6666),
		"code":   strings.Repeat("`a` ", 5000),
		"heads":  strings.Repeat("# a\n", 5000),
	}
	return long
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
		if p.Older != want || p.TooFar != (want == "") {
			t.Errorf("skip %d: next %q, too far %v", skip, p.Older, p.TooFar)
		}
	}
}

// The page of an entry shows all of a reason and its last link, whatever the reason is made of.
func TestNothingIsLostOfAReason(t *testing.T) {
	const last = "\n\n<ostatni@link.example>"
	reasons := longReasons()
	reasons["mails"] = strings.Repeat("<a@b>", 300) // most HTML a byte
	for name, reason := range reasons {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason = strings.ToValidUTF8(reason[:min(len(reason), events.MaxReason-len(last))], "") + last
			w := newWorld(t, full(), worst(1, func(int) string { return reason })...)
			row := w.view.Entry(events.Scammers, fmt.Sprintf("%064d", 0))
			public, err := row.Public()
			require.NoError(t, err)
			page := w.entry(t, events.Scammers, row.ID())
			squeeze := strings.NewReplacer("\n", "")
			if got, want := squeeze.Replace(reasonIn(t, page)), squeeze.Replace(shownText(public.DescHTML)); got != want {
				t.Errorf("%d bytes of text, want %d", len(got), len(want))
			}
			if strings.Count(public.DescHTML, "<a ") != strings.Count(reasonHTML(page), "<a ") || !strings.Contains(page, `ostatni@link.example`) {
				t.Errorf("links are missing in %d bytes", len(page))
			}
		})
	}
}

// reasonHTML is the HTML of the reason on the page of an entry.
func reasonHTML(page string) string {
	_, after, _ := strings.Cut(page, `<div class="r">`)
	reason, _, _ := strings.Cut(after, "</div>")
	return reason
}

// shownText is the text of HTML that may be nested more deeply than a parser takes.
func shownText(reason string) string {
	var b strings.Builder
	for z := html.NewTokenizer(strings.NewReader(reason)); z.Next() != html.ErrorToken; {
		if tok := z.Token(); tok.Type == html.TextToken {
			b.WriteString(tok.Data)
		}
	}
	return b.String()
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

// reasonIn is the text of the reasons of a page.
func reasonIn(t *testing.T, page string) string {
	var b strings.Builder
	for _, n := range elements(t, page, "div") {
		if attr(n, "class") == "r" {
			b.WriteString(seenIn(n))
		}
	}
	return b.String()
}
