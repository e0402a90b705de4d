package httpapi

import (
	"encoding/xml"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// What is new is the listings of the days asked for, newest first, without trusted persons, and the
// removals by day; the feed has no names.
func TestNews(t *testing.T) {
	f := serveSite(t)
	at := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	entry := func(l events.List, id, name string, days int) events.Data {
		return events.Entry{Revision: 1, List: l, EntryID: id, ChatID: "9000000000000000" + id, Name: name, Verified: true, ReportID: "R-" + id, ReportedAt: at.AddDate(0, 0, days)}
	}
	f.apply(
		entry(events.Scammers, "11", "Nowy Najstarszy", 0), entry(events.Servers, "12", "Nowy Serwer", 1),
		entry(events.Scammers, "13", "Nowy Najmłodszy", 2), entry(events.Legit, "14", "Nowy Zaufany", 1),
		events.Delisting{Revision: 1, Time: time.Unix(1, 0).UTC(), List: events.Scammers, EntryID: "11"},
	)
	page := f.fetch(t, http.MethodGet, "/co-nowego?od=2026-11-10&do=2026-11-12")
	isPage(t, "/co-nowego", page, http.StatusOK)
	newest, server := strings.Index(page.body, "Nowy Najmłodszy"), strings.Index(page.body, "Nowy Serwer")
	if newest < 0 || server < newest || strings.Contains(page.body, "Nowy Zaufany") || strings.Contains(page.body, "Nowy Najstarszy") {
		t.Errorf("listed at %d and %d: %s", newest, server, page.body)
	}
	if one := f.fetch(t, http.MethodGet, "/co-nowego?od=2026-11-11&do=2026-11-11"); strings.Contains(one.body, "Nowy Najmłodszy") || !strings.Contains(one.body, "Nowy Serwer") {
		t.Error("the days do not bound what is listed")
	}
	feed := f.fetch(t, http.MethodGet, "/co-nowego.atom?od=2026-11-10")
	var read struct {
		Updated string `xml:"updated"`
		Entries []struct {
			ID, Title, Updated string
			Link               struct {
				Href string `xml:"href,attr"`
			} `xml:"link"`
		} `xml:"entry"`
	}
	require.NoError(t, xml.Unmarshal([]byte(feed.body), &read))
	if feed.header.Get("Content-Type") != "application/atom+xml; charset=utf-8" || strings.Contains(feed.body, "Nowy") || len(read.Entries) != 2 {
		t.Fatalf("%v: %s", feed.header, feed.body)
	}
	if e := read.Entries[0]; !strings.HasSuffix(e.Link.Href, "/wpis/scammers/13") || read.Updated != "2026-11-12T12:00:00Z" {
		t.Errorf("%+v", read)
	}
	for query, want := range map[string]int{
		"": 200, "od=2026-11-01&do=2026-12-02": 200, "od=2026-11-01&do=2026-12-03": 400, "od=2026-11-02&do=2026-11-01": 400, "od=1.11.2026": 400, "do=2026-02-30": 400, "do=2026-11-01": 200,
	} {
		if got := f.fetch(t, http.MethodGet, "/co-nowego?"+query); got.status != want {
			t.Errorf("%s: %d, want %d", query, got.status, want)
		}
	}
}

// Without days, what is new is the last seven; with one of them, seven that begin or end there.
func TestNewsDays(t *testing.T) {
	for raw, want := range map[string]newsQuery{
		"":                                    {},
		"od=2026-11-01":                       {from: 20758, until: 20764},
		"do=2026-11-07":                       {from: 20758, until: 20764},
		"do=1970-01-03":                       {from: 1, until: 2},
		"od=2026-11-01&do=2026-11-02&skip=60": {from: 20758, until: 20759, skip: 60},
	} {
		got, err := parseNews(raw)
		require.NoError(t, err)
		if got != want {
			t.Errorf("%q: %+v, want %+v", raw, got, want)
		}
	}
	if d := readmodel.DayOf(time.Date(2026, 11, 1, 23, 59, 59, 0, time.UTC)); d != 20758 {
		t.Errorf("day %d", d)
	}
}
