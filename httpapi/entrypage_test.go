package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"example.org/registry/events"
)

// An entry's page shows what its list does, and is gone when the entry is.
func TestEntryPages(t *testing.T) {
	f := serveSite(t)
	for _, l := range events.Lists() {
		e := events.Entry{Revision: 1, List: l, EntryID: "an_Id-9", ChatID: "123456789012345678", Name: "Nowy " + string(l), Reason: "Powód *wpisu*.", Verified: true,
			ReportID: "R-9", ReportedAt: asOf()}
		target := "/wpis/" + string(l) + "/an_Id-9"
		before := f.fetch(t, http.MethodGet, target)
		isPage(t, target, before, http.StatusNotFound)
		f.apply(e)
		for range 3 { // remembered from the second time on
			a := f.fetch(t, http.MethodGet, target)
			isPage(t, target, a, http.StatusOK)
			for _, want := range []string{e.Name, "<p>Powód <em>wpisu</em>.</p>", "R-9", "<span>1234</span>", `datetime="` + asOf().UTC().Format("2006-01-02T15:04:05Z")} {
				if !strings.Contains(a.body, want) {
					t.Errorf("%s: %q is not said", target, want)
				}
			}
		}
		tag := f.fetch(t, http.MethodGet, target).header.Get("ETag")
		f.apply(events.Views{Revision: 1, List: l, EntryID: e.EntryID, Views: 7}, events.Entry{Revision: 1, List: l, EntryID: "another", ChatID: "1", Name: "x", ReportID: "r", Verified: true})
		if got := f.fetch(t, http.MethodGet, target).header.Get("ETag"); got != tag {
			t.Errorf("%s: the tag has changed with others: %s, %s", target, tag, got)
		}
		f.apply(events.Delisting{Revision: 1, List: l, EntryID: e.EntryID})
		for _, held := range []string{"", tag, "*"} {
			after := f.fetch(t, http.MethodGet, target, "If-None-Match", held)
			isPage(t, target, after, http.StatusNotFound)
			if after.body != before.body {
				t.Errorf("%s: another answer than before anybody was there: %s", target, after.body)
			}
		}
	}
}

// An entry that no list shows has no page, and neither has text that is no entry id.
func TestNobodysPages(t *testing.T) {
	f := serveSite(t)
	f.apply(events.Entry{Revision: 1, List: events.Legit, EntryID: "unseen", ChatID: "1", Name: "Niezweryfikowana", ReportID: "r"})
	nobody := f.fetch(t, http.MethodGet, "/wpis/scammers/nobody").body
	for _, target := range []string{"/wpis/legit/unseen", "/wpis/legit/g1", "/wpis/servers/g1%3F", "/wpis/servers/g1%2F", "/wpis/servers/%00",
		"/wpis/servers/" + strings.Repeat("g", 65), "/wpis/nothing/g1", "/wpis/servers", "/wpis/servers/", "/wpis/", "/wpis", somebodysPage + "/"} {
		a := f.fetch(t, http.MethodGet, target)
		isPage(t, target, a, http.StatusNotFound)
		if a.body != nobody {
			t.Errorf("%s: another answer than for nobody", target)
		}
	}
	for query, status := range map[string]int{"x=1": 200, "%zz": 400} {
		isPage(t, query, f.fetch(t, http.MethodGet, somebodysPage+"?"+query), status)
	}
	if a := f.fetch(t, http.MethodGet, somebodysPage, "Registry-Min-Sequence", "999999"); a.status != http.StatusServiceUnavailable {
		t.Errorf("a sequence that is not there: %d", a.status)
	}
}
