package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/internal/apitest"
)

const changesOf = "/api/changes/" + apitest.Epoch

func TestChangesParameters(t *testing.T) {
	for raw, want := range map[string]feedQuery{
		"since=0":                             {limit: 500},
		"since=9999999999999999999":           {since: 9999999999999999999, limit: 500},
		"since=%2007+&limit=1000&wait=25&x=1": {since: 7, limit: 1000, wait: 25 * time.Second},
		"limit=&since=1&wait=":                {since: 1, limit: 500},
	} {
		if got, err := parseChanges("", raw); err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", raw, got, err, want)
		}
	}
	for raw, want := range map[string]string{
		"": "missing since", "since=": "missing since", "since=%20": "missing since", "limit=1": "missing since",
		"since=-1": "since", "since=+": "missing since", "since=1e3": "since", "since=0x1": "since", "since=1.0": "since",
		"since=10000000000000000000": "since", "since=00000000000000000001": "since", "since=1&since=1": "since", "since=%D9%A1": "since",
		"since=0&limit=0": "limit", "since=0&limit=1001": "limit", "since=0&limit=x": "limit", "limit=0": "limit",
		"since=0&wait=26": "wait", "since=0&wait=-1": "wait", "since=0&wait=1s": "wait", "since=x&wait=26": "since",
		"since=%zz": "query", "since=0;1": "query",
	} {
		_, err := parseChanges("", raw)
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

// The position of the feed moves with every event, its last change and its digest with a change of an entry.
func TestFeedSummary(t *testing.T) {
	f := serve(t)
	before := f.feedOf(t)
	f.apply(events.Views{Revision: 1, List: events.Scammers, EntryID: "s1", Views: 11})
	if now := f.feedOf(t); now.Sequence != before.Sequence+1 || now.LastChange != before.LastChange || now.Digest != before.Digest {
		t.Errorf("after a view was counted: %+v, before %+v", now, before)
	}
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	if now := f.feedOf(t); now.LastChange != now.Sequence || now.Digest == before.Digest || now.Entries.Scammers != before.Entries.Scammers-1 {
		t.Errorf("after a delisting: %+v, before %+v", now, before)
	}
}

// No page that is made after a delisting has the delisted text, and its tag is another one.
func TestDelistedLeavesTheFeed(t *testing.T) {
	f := serve(t)
	target := changesOf + "?since=0"
	tag := f.get(t, target).header.Get("Etag")
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	a := f.get(t, target, "If-None-Match", tag)
	if want := `{"seq":` + apitest.Sequence(1) + `,"op":"remove","list":"scammers","_id":"s1"}]}`; strings.Contains(a.body, "zaliczki") || !strings.HasSuffix(a.body, want) {
		t.Errorf("%d %s, want %s at the end", a.status, a.body, want)
	}
}

// A page of another feed, also of one that is spelled alike, is gone. It is refused after the parameters and readiness.
func TestBadChanges(t *testing.T) {
	f := serve(t)
	for _, epoch := range []string{apitest.Epoch + "%3F", strings.ToUpper(apitest.Epoch)} {
		f.wantError(t, http.StatusGone, errGone.text, http.MethodGet, "/api/changes/"+epoch+"?since=99999")
	}
	f.wantError(t, http.StatusNotFound, errNotFound.text, http.MethodGet, changesOf+"/?since=0")
	f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: wait.", http.MethodGet, "/api/changes/other?since=0&wait=26")
	f.set(func(s *Readiness) { s.Ready = false })
	f.wantError(t, http.StatusServiceUnavailable, errLoading.text, http.MethodGet, "/api/changes/other?since=0")
}

// A reader that is ahead of this replica gets its page once the replica has come so far, unless
// another stream has come instead.
func TestChangesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		answers := make(chan *response)
		ask := func(target string) {
			go func() { answers <- f.get(t, target) }()
			synctest.Wait()
			require.Len(t, f.public.sequenceWaiting, 1)
		}
		ask(changesOf + "?since=" + apitest.Sequence(1))
		f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
		if a := <-answers; a.status != http.StatusOK || !strings.Contains(a.body, `"upToDate":true,"changes":[]`) {
			t.Errorf("%d %s", a.status, a.body)
		}
		ask(changesOf + "?since=" + apitest.Sequence(2))
		f.model.NameFeed("other")
		f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s2"})
		if a := <-answers; a.status != http.StatusGone {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func at(n int) uint64 { return uint64(len(apitest.People()) + n) }

// A poll that would be empty waits for the next change, and for nothing else.
func TestLongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		answers := make(chan *response)
		poll := func(target string) {
			go func() { answers <- f.get(t, target) }()
			synctest.Wait()
			require.Len(t, f.public.polls.waiting, 1)
		}
		poll(changesOf + "?wait=25&since=" + apitest.Sequence(0))
		f.apply(events.Views{Revision: 1, List: events.Scammers, EntryID: "s1", Views: 11})
		f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
		a := <-answers
		if want := fmt.Sprintf(`"until":%d,"upToDate":true,"changes":[{"seq":%[1]d,"op":"remove","list":"scammers","_id":"s1"}]}`, at(2)); !strings.HasSuffix(a.body, want) {
			t.Errorf("%s, want %s", a.body, want)
		}
		if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Registry-Sequence") != apitest.Sequence(2) {
			t.Errorf("%v", a.header)
		}
		if a := f.get(t, changesOf+"?wait=25&since=0"); !strings.Contains(a.body, `"seq":2`) || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("with changes there: %v %s", a.header, a.body)
		}
		if a := f.get(t, changesOf+"?wait=0&since="+apitest.Sequence(2)); a.header.Get("Cache-Control") != "public, s-maxage=5" {
			t.Errorf("wait=0: %v", a.header)
		}
		if a := f.get(t, changesOf+"?wait=1&since="+apitest.Sequence(2)); !strings.HasSuffix(a.body, `"upToDate":true,"changes":[]}`) {
			t.Errorf("after a second: %s", a.body)
		}
		poll(changesOf + "?wait=25&since=" + apitest.Sequence(2))
		f.model.NameFeed("other")
		if a := <-answers; a.status != http.StatusGone {
			t.Errorf("another stream: %d %s", a.status, a.body)
		}
		eventstest.Until(t, func() bool { return len(f.public.polls.waiting) == 0 })
	})
}

// Everybody who waits gets an answer when the server stops or what it has is too old; a reader that
// leaves is forgotten; more than may wait are refused.
func TestLongPollEnds(t *testing.T) {
	f := serve(t, func(cfg *Config) { cfg.MaxFollowers = 2 })
	target := changesOf + "?wait=25&since=" + apitest.Sequence(0)
	answers := make(chan *response)
	for range 2 {
		go func() { answers <- f.get(t, target) }()
	}
	eventstest.Until(t, func() bool { return len(f.public.polls.waiting) == 2 })
	f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, target)
	f.set(func(s *Readiness) { s.Ready = false })
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	for range 2 {
		if a := <-answers; a.status != http.StatusServiceUnavailable {
			t.Errorf("nothing may be answered: %d %s", a.status, a.body)
		}
	}
	f.set(func(s *Readiness) { s.Ready = true })

	ctx, cancel := context.WithCancel(context.Background())
	target = changesOf + "?wait=25&since=" + apitest.Sequence(1)
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.addr+target, nil)
	left := make(chan error)
	go func() {
		resp, err := f.client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		left <- err
	}()
	eventstest.Until(t, func() bool { return len(f.public.polls.waiting) == 1 })
	cancel()
	if <-left == nil {
		t.Error("the reader did not leave")
	}
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s2"})
	eventstest.Until(t, func() bool { return len(f.public.polls.waiting) == 0 })

	target = changesOf + "?wait=25&since=" + apitest.Sequence(2)
	go func() { answers <- f.get(t, target) }()
	eventstest.Until(t, func() bool { return len(f.public.polls.waiting) == 1 })
	f.public.EndFollowing()
	for range 2 {
		if a := <-answers; a.status != http.StatusOK || !strings.HasSuffix(a.body, `"changes":[]}`) {
			t.Errorf("the server stops: %d %s", a.status, a.body)
		}
		go func() { answers <- f.get(t, target) }()
	}
	<-answers
}
