package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/internal/apitest"
)

func at(n int) uint64 { return uint64(len(apitest.People()) + n) }

// A poll that would be empty waits for the next change, and for nothing else.
func TestLongPoll(t *testing.T) {
	f := serve(t)
	answers := make(chan *response)
	poll := func(target string) {
		go func() { answers <- f.get(t, target) }()
		eventstest.Until(t, func() bool { return f.public.pollers.waiting.count() == 1 })
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
	f.model.NameFeed("other", false)
	if a := <-answers; a.status != http.StatusGone {
		t.Errorf("another stream: %d %s", a.status, a.body)
	}
	eventstest.Until(t, func() bool { return f.public.pollers.waiting.count() == 0 })
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
	eventstest.Until(t, func() bool { return f.public.pollers.waiting.count() == 2 })
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
	eventstest.Until(t, func() bool { return f.public.pollers.waiting.count() == 1 })
	cancel()
	if <-left == nil {
		t.Error("the reader did not leave")
	}
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s2"}) // without a reset of the connection, the answer tells
	eventstest.Until(t, func() bool { return f.public.pollers.waiting.count() == 0 })

	target = changesOf + "?wait=25&since=" + apitest.Sequence(2)
	go func() { answers <- f.get(t, target) }()
	eventstest.Until(t, func() bool { return f.public.pollers.waiting.count() == 1 })
	f.public.EndFollowing()
	for range 2 {
		if a := <-answers; a.status != http.StatusOK || !strings.HasSuffix(a.body, `"changes":[]}`) {
			t.Errorf("the server stops: %d %s", a.status, a.body)
		}
		go func() { answers <- f.get(t, target) }()
	}
	<-answers
}

// What ends a wait ends it at once: none of these is a wait that has run out.
func TestWaitEndsAtOnce(t *testing.T) {
	f := serve(t)
	waits := func(end func()) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		ended, v := make(chan error), f.model.View()
		q := feedQuery{epoch: v.Epoch(), since: v.Sequence(), wait: time.Hour}
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, changesOf, nil)
		go func() { ended <- f.public.pollers.await(r, &q) }()
		eventstest.Until(t, func() bool { return f.public.pollers.waiting.count() == 1 })
		if end(); <-ended != nil {
			t.Error("it waits on")
		}
	}
	waits(func() {
		f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	})
	waits(func() { f.model.NameFeed("other", false) })
	waits(f.public.EndFollowing)
}
