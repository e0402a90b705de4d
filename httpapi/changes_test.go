package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/internal/apitest"
)

const changesOf = "/api/changes/" + apitest.Epoch

func TestChangesParameters(t *testing.T) {
	for raw, want := range map[string]feedQuery{
		"e?since=0":                                 {epoch: "e", limit: 500},
		"e?since=9999999999999999999":               {epoch: "e", since: 9999999999999999999, limit: 500},
		"?since=%2007+&limit=1000&wait=25&x=1":      {since: 7, limit: 1000, wait: 25 * time.Second},
		"2026-11-21T10:15:00Z?limit=&since=1&wait=": {epoch: "2026-11-21T10:15:00Z", since: 1, limit: 500},
	} {
		if got, err := parseChanges(raw); err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", raw, got, err, want)
		}
	}
	for raw, want := range map[string]string{
		"e?": "missing since", "e?since=": "missing since", "e?since=%20": "missing since", "e?limit=1": "missing since",
		"e?since=-1": "since", "e?since=+": "missing since", "e?since=1e3": "since", "e?since=0x1": "since", "e?since=1.0": "since",
		"e?since=10000000000000000000": "since", "e?since=00000000000000000001": "since", "e?since=1&since=1": "since", "e?since=%D9%A1": "since",
		"e?since=0&limit=0": "limit", "e?since=0&limit=1001": "limit", "e?since=0&limit=x": "limit", "e?limit=0": "limit",
		"e?since=0&wait=26": "wait", "e?since=0&wait=-1": "wait", "e?since=0&wait=1s": "wait", "e?since=x&wait=26": "since",
		"e?since=%zz": "query", "e?since=0;1": "query",
	} {
		_, err := parseChanges(raw)
		if got := wrong(t, err); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

// feedOf is the body of /api/changes.
func (f *fixture) feedOf(t *testing.T) (body feedBody) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(f.get(t, "/api/changes").body), &body))
	return body
}

func TestFeedSummary(t *testing.T) {
	f := serve(t)
	before := f.feedOf(t)
	if before.Epoch != apitest.Epoch || before.LastChange != 9 || before.AsOf != body.Time(asOf()) {
		t.Errorf("%+v", before)
	}
	a := f.get(t, "/api/changes")
	if h := a.header; h.Get("Cache-Control") != "public, s-maxage=5" || h.Get("Etag") != "" || h.Get("Vary") != "Registry-Min-Sequence" ||
		h.Get("Registry-Sequence") != apitest.Sequence(0) {
		t.Errorf("%v", h)
	}
	if a = f.get(t, "/api/changes", "Registry-Min-Sequence", "1"); a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("at a sequence: %v", a.header)
	}
	f.apply(events.Views{Revision: 1, List: events.Scammers, EntryID: "s1", Views: 11})
	if now := f.feedOf(t); now.Sequence != before.Sequence+1 || now.LastChange != before.LastChange || now.Digest != before.Digest {
		t.Errorf("after a view was counted: %+v", now)
	}
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	if now := f.feedOf(t); now.LastChange != now.Sequence || now.Digest == before.Digest || now.Entries.Scammers != before.Entries.Scammers-1 {
		t.Errorf("after a delisting: %+v", now)
	}
	f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: query.", http.MethodGet, "/api/changes?%zz")
	f.wantError(t, http.StatusNotFound, "Nie znaleziono.", http.MethodGet, "/api/changes/")
	f.wantError(t, http.StatusMethodNotAllowed, "Metoda niedozwolona", http.MethodHead, "/api/changes")
	f.set(func(s *Readiness) { s.Ready = false })
	f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/changes")
}

func TestChangesHeaders(t *testing.T) {
	f := serve(t)
	target := changesOf + "?since=0"
	for range 3 { // built, remembered, and from memory
		a := f.get(t, target, "Accept-Encoding", "gzip")
		if h := a.header; a.status != http.StatusOK || h.Get("Cache-Control") != "public, s-maxage=5" || h.Get("Content-Encoding") != "gzip" ||
			h.Get("Vary") != "Accept-Encoding, Registry-Min-Sequence" || h.Get("Registry-Sequence") != apitest.Sequence(0) {
			t.Fatalf("%d %v", a.status, h)
		}
		if b := f.get(t, target, "If-None-Match", a.header.Get("Etag")); b.status != http.StatusNotModified || b.body != "" {
			t.Errorf("its own tag: %d", b.status)
		}
	}
	tag := f.get(t, target).header.Get("Etag")
	f.apply(events.Views{Revision: 1, List: events.Scammers, EntryID: "s1", Views: 11})
	if b := f.get(t, target, "If-None-Match", tag); b.status != http.StatusOK || !strings.Contains(b.body, `"until":`+apitest.Sequence(1)) {
		t.Errorf("after an event: %d %s", b.status, b.body)
	}
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	if b := f.get(t, target); strings.Contains(b.body, "zaliczki") || !strings.HasSuffix(b.body, `{"seq":`+apitest.Sequence(2)+`,"op":"remove","list":"scammers","_id":"s1"}]}`) {
		t.Errorf("after a delisting: %s", b.body)
	}
}

// What is wrong with a request is said in the order of the contract.
func TestBadChanges(t *testing.T) {
	f := serve(t)
	f.public.gate.wait = time.Millisecond
	const loading = "Trwa wczytywanie danych."
	const gone = "Zmiany sprzed tej pozycji nie są już dostępne."
	get := func(status int, text, target string, headers ...string) *response {
		t.Helper()
		return f.wantError(t, status, text, http.MethodGet, target, headers...)
	}
	get(http.StatusBadRequest, "Brak wymaganego parametru: since.", changesOf)
	get(http.StatusBadRequest, "Nieprawidłowy parametr: since.", changesOf+"?since=-1")
	get(http.StatusBadRequest, "Nieprawidłowy parametr: wait.", "/api/changes/other?since=0&wait=26")
	get(http.StatusGone, gone, "/api/changes/other?since=0")
	get(http.StatusGone, gone, "/api/changes/other?since=99999")
	get(http.StatusGone, gone, "/api/changes/"+apitest.Epoch+"%3F?since=0")
	get(http.StatusGone, gone, "/api/changes/"+strings.ToUpper(apitest.Epoch)+"?since=0")
	get(http.StatusNotFound, "Nie znaleziono.", changesOf+"/?since=0")
	get(http.StatusServiceUnavailable, loading, changesOf+"?since=9999999999999999999")
	if a := get(http.StatusServiceUnavailable, loading, changesOf+"?since="+apitest.Sequence(1)); a.header.Get("Retry-After") == "" {
		t.Error("ahead: no Retry-After")
	}
	f.set(func(s *Readiness) { s.Ready = false })
	get(http.StatusServiceUnavailable, loading, "/api/changes/other?since=0")
	get(http.StatusBadRequest, "Nieprawidłowy parametr: since.", "/api/changes/other?since=x")
}

// A reader that is ahead of this replica gets its page once the replica has come so far, unless
// another stream has come instead.
func TestChangesAhead(t *testing.T) {
	f := serve(t)
	f.public.gate.wait = 20 * time.Second
	answers := make(chan *response)
	ask := func(target string) {
		go func() { answers <- f.get(t, target) }()
		eventstest.Until(t, func() bool { return f.public.gate.waiting.count() == 1 })
	}
	ask(changesOf + "?since=" + apitest.Sequence(1))
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	if a := <-answers; a.status != http.StatusOK || !strings.Contains(a.body, `"upToDate":true,"changes":[]`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	ask(changesOf + "?since=" + apitest.Sequence(2))
	f.model.NameFeed("other", false)
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s2"})
	if a := <-answers; a.status != http.StatusGone {
		t.Errorf("%d %s", a.status, a.body)
	}
}
