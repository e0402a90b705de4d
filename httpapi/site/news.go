package site

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// The paths of what is new, as a page and as an Atom feed.
const (
	NewsPath = "/co-nowego"
	FeedPath = "/co-nowego.atom"
)

// NewsSize is how many listings a page of news and the feed have.
const NewsSize = 60

// NewsPage is the content of one page of news. All of it belongs to one view.
type NewsPage struct {
	From, Until readmodel.Day
	Skip        int
	Rows        []*readmodel.Row // newest first
	Total       int              // of the listings in these days
	Removed     []int32          // by day, from From on
	AsOf        time.Time        // as in Page
}

// newsView is the data of news.html.
type newsView struct {
	From, Until  string // ISO dates
	Count        string
	Removed      []removal // days without are omitted
	Days         []newsDay
	Newer, Older string // links, if any
}

// removal is how many entries were removed on a day.
type removal struct {
	Day   time.Time
	Count string
}

// newsDay is the listings of one day.
type newsDay struct {
	Day  time.Time
	Rows template.HTML
}

// News appends the page of what is new.
func (s *Site) News(dst []byte, p NewsPage) ([]byte, error) {
	v := newsView{From: p.From.Start().Format(time.DateOnly), Until: p.Until.Start().Format(time.DateOnly),
		Count: forms{"nowe zgłoszenie", "nowe zgłoszenia", "nowych zgłoszeń"}.count(p.Total)}
	for i, n := range slices.Backward(p.Removed) {
		if n > 0 {
			v.Removed = append(v.Removed, removal{(p.From + readmodel.Day(i)).Start(), entries().count(int(n))})
		}
	}
	room, shown := entryRoom, 0
	for shown < len(p.Rows) {
		day := readmodel.DayOf(p.Rows[shown].Reported())
		end := shown
		for end < len(p.Rows) && readmodel.DayOf(p.Rows[end].Reported()) == day {
			end++
		}
		rows, n, err := fill(end-shown, room, func(into *bytes.Buffer, i int) error {
			return s.row(into, p.Rows[shown+i])
		})
		if err != nil {
			return dst, err
		}
		if n == 0 {
			break
		}
		v.Days = append(v.Days, newsDay{day.Start(), rows})
		room -= len(rows) + 200
		if shown += n; shown < end {
			break
		}
	}
	if p.Skip > 0 {
		v.Newer = newsLink(v.From, v.Until, max(0, p.Skip-NewsSize))
	}
	if p.Skip+shown < p.Total && shown > 0 {
		v.Older = newsLink(v.From, v.Until, p.Skip+shown)
	}
	return s.Append(dst, "news", Page{Title: "Co nowego", Path: NewsPath, AsOf: p.AsOf, Data: v})
}

func newsLink(from, until string, skip int) string {
	values := url.Values{"od": {from}, "do": {until}}
	if skip > 0 {
		values.Set("skip", strconv.Itoa(skip))
	}
	return NewsPath + "?" + values.Encode()
}

// atomFeed and atomEntry are RFC 4287.
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	Lang    string      `xml:"xml:lang,attr"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Link    atomLink `xml:"link"`
}

// Feed appends the Atom feed of what is new: the list, the date, the number of the report and the
// link of each listing, and no name, since feeds keep what they have read after an entry is
// delisted.
func (s *Site) Feed(dst []byte, p NewsPage) ([]byte, error) {
	id := func(path string) string {
		return "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(s.absolute(path))).String()
	}
	feed := atomFeed{Lang: "pl", ID: id(FeedPath), Title: "Rejestr: co nowego", Updated: iso(p.From.Start()), Author: "Rejestr",
		Links: []atomLink{{"self", s.absolute(FeedPath)}, {"alternate", s.absolute(NewsPath)}}}
	for i, r := range p.Rows {
		e, err := s.entry(r)
		if err != nil {
			return dst, err
		}
		if i == 0 {
			feed.Updated = iso(e.Reported)
		}
		feed.Entries = append(feed.Entries, atomEntry{ID: id(e.Path()), Title: wordsOf(r.List()).Title + ": zgłoszenie nr " + e.ReportID,
			Updated: iso(e.Reported), Link: atomLink{Href: s.absolute(e.Path())}})
	}
	out := bytes.NewBuffer(append(dst, xml.Header...))
	if err := xml.NewEncoder(out).Encode(feed); err != nil {
		return dst, fmt.Errorf("site: feed: %w", err)
	}
	return out.Bytes(), nil
}

// NewsLists returns the lists whose entries are news.
func NewsLists() []events.List { return []events.List{events.Scammers, events.Servers} }
