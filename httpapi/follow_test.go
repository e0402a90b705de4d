package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/internal/apitest"
)

// event is a server-sent event as a reader has it.
type event struct {
	id   uint64
	name string
	data string
}

// follower reads a stream of events. Every read has a bound.
type follower struct {
	t    testing.TB
	resp *http.Response
	body *bufio.Scanner
	stop context.CancelFunc
}

// follow begins to follow the feed until the test ends. Headers are pairs.
func (f *fixture) follow(t testing.TB, query string, headers ...string) *follower {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.addr+changesOf+"/events"+query, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.client.Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	body := bufio.NewScanner(resp.Body)
	body.Buffer(nil, 1<<20)
	return &follower{t, resp, body, cancel}
}

// next returns the next event; false once the stream has ended.
func (f *follower) next() (e event, ok bool) {
	f.t.Helper()
	for f.body.Scan() {
		name, value, _ := strings.Cut(f.body.Text(), ": ")
		switch name {
		case "id":
			e.id, _ = strconv.ParseUint(value, 10, 64)
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			return e, true
		default:
			f.t.Fatalf("%q", f.body.Text())
		}
	}
	if err := f.body.Err(); err != nil && os.IsTimeout(err) {
		f.t.Fatal("the stream goes on")
	}
	return e, false
}

// want reads an event and compares it.
func (f *follower) want(id uint64, name, data string) {
	f.t.Helper()
	if e, ok := f.next(); !ok || e.id != id || e.name != name || data != "" && e.data != data {
		f.t.Fatalf("%v %+v, want %d %s %s", ok, e, id, name, data)
	}
}

// ended waits for the end of the stream.
func (f *follower) ended() {
	f.t.Helper()
	for {
		if e, ok := f.next(); !ok {
			return
		} else if e.name != "tick" {
			f.t.Fatalf("%+v, want the end", e)
		}
	}
}

func at(n int) uint64 { return uint64(len(apitest.People()) + n) }

// A poll that would be empty waits for the next change, and for nothing else.
func TestLongPoll(t *testing.T) {
	f := serve(t)
	answers := make(chan *response)
	poll := func(target string) {
		go func() { answers <- f.get(t, target) }()
		eventstest.Until(t, func() bool { return f.public.followers.waiting.count() == 1 })
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
	eventstest.Until(t, func() bool { return f.public.followers.waiting.count() == 0 })
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
	eventstest.Until(t, func() bool { return f.public.followers.waiting.count() == 2 })
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
	eventstest.Until(t, func() bool { return f.public.followers.waiting.count() == 1 })
	cancel()
	if <-left == nil {
		t.Error("the reader did not leave")
	}
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s2"}) // without a reset of the connection, the answer tells
	eventstest.Until(t, func() bool { return f.public.followers.waiting.count() == 0 })

	target = changesOf + "?wait=25&since=" + apitest.Sequence(2)
	go func() { answers <- f.get(t, target) }()
	eventstest.Until(t, func() bool { return f.public.followers.waiting.count() == 1 })
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
	gone := make(chan struct{})
	waits := func(end func()) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		ended, v := make(chan error), f.model.View()
		q := feedQuery{epoch: v.Epoch(), since: v.Sequence(), wait: time.Hour}
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, changesOf, nil)
		go func() { ended <- f.public.followers.await(r, &q, gone) }()
		eventstest.Until(t, func() bool { return f.public.followers.waiting.count() == 1 })
		if end(); <-ended != nil {
			t.Error("it waits on")
		}
	}
	waits(func() {
		f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	})
	waits(func() { f.model.NameFeed("other", false) })
	waits(func() { close(gone) })
	gone = nil
	waits(f.public.EndFollowing)
}

// A follower gets what was there, a tick, and then each change, as pages have it.
func TestFollow(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = time.Hour
	s := f.follow(t, "?since=3")
	if h := s.resp.Header; h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("Content-Encoding") != "" ||
		h.Get("X-Accel-Buffering") != "no" || h.Get("Registry-Sequence") != apitest.Sequence(0) {
		t.Errorf("%v", h)
	}
	var page struct{ Changes []json.RawMessage }
	if err := json.Unmarshal([]byte(f.get(t, changesOf+"?since=3").body), &page); err != nil || len(page.Changes) != 6 {
		t.Fatal(err, page)
	}
	for i, c := range page.Changes {
		name := "set"
		if i == 4 {
			name = "remove" // of legit, not verified
		}
		s.want(uint64(4+i), name, string(c))
	}
	s.want(at(0), "tick", fmt.Sprintf(`{"sequence":%d,"asOf":"%s"}`, at(0), body.Time(asOf())))
	f.apply(events.Views{Revision: 1, List: events.Scammers, EntryID: "s1", Views: 11})
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	s.want(at(2), "remove", fmt.Sprintf(`{"seq":%d,"op":"remove","list":"scammers","_id":"s1"}`, at(2)))
	later := f.follow(t, "?since=0", "Last-Event-ID", apitest.Sequence(1))
	later.want(at(2), "remove", "")
	later.want(at(2), "tick", "")
	f.model.NameFeed("other", false)
	s.ended()
	later.ended()
	eventstest.Until(t, func() bool { return f.public.followers.following.count() == 0 })
}

// A follower that leaves is forgotten at once, also when nothing happens; one that has only closed
// its sending side is not.
func TestFollowerLeaves(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = time.Hour
	s := f.follow(t, "?since="+apitest.Sequence(0))
	s.want(at(0), "tick", "")
	conn, err := net.Dial("tcp", f.addr)
	require.NoError(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, err = fmt.Fprintf(conn, "GET %s/events?since=%s HTTP/1.1\r\nHost: x\r\n\r\n", changesOf, apitest.Sequence(0))
	require.NoError(t, err)
	lines := bufio.NewScanner(conn)
	read := func(text string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == text {
				return
			}
		}
		t.Fatal("no ", text, lines.Err())
	}
	read("event: tick")
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	read("event: tick")
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	read("event: remove")
	s.want(at(1), "remove", "")
	s.stop()
	eventstest.Until(t, func() bool { return f.public.followers.following.count() == 1 })
}

// Once too few entries are left nothing is told to anybody: not to those who follow, nor to those
// who have waited for just that event.
func TestTooFewToFollow(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = time.Hour
	f.public.gate.health.MinEntries = f.model.View().Total()
	s := f.follow(t, "?since="+apitest.Sequence(0))
	s.want(at(0), "tick", "")
	answers := make(chan *response)
	for _, target := range []string{changesOf + "?since=" + apitest.Sequence(1), changesOf + "?wait=25&since=" + apitest.Sequence(0)} {
		go func() { answers <- f.get(t, target) }()
	}
	eventstest.Until(t, func() bool {
		return f.public.followers.waiting.count() == 1 && f.public.gate.waiting.count() == 1
	})
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	for range 2 {
		if a := <-answers; a.status != http.StatusServiceUnavailable {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	s.ended()
}

func TestBadFollow(t *testing.T) {
	f := serve(t, func(cfg *Config) { cfg.MaxFollowers = 1 })
	f.public.gate.wait = time.Millisecond
	get := func(status int, text, target string, headers ...string) {
		t.Helper()
		f.wantError(t, status, text, http.MethodGet, target, headers...)
	}
	get(http.StatusBadRequest, "Brak wymaganego parametru: since.", changesOf+"/events")
	get(http.StatusBadRequest, "Brak wymaganego parametru: since.", changesOf+"/events", "Last-Event-ID", "")
	get(http.StatusBadRequest, "Nieprawidłowy parametr: since.", changesOf+"/events?since=x", "Last-Event-ID", "1")
	for _, bad := range []string{"x", "-1", "10000000000000000000", "1 2"} {
		get(http.StatusBadRequest, "Nieprawidłowy parametr: Last-Event-ID.", changesOf+"/events?since=0", "Last-Event-ID", bad)
	}
	get(http.StatusBadRequest, "Nieprawidłowy parametr: Last-Event-ID.", changesOf+"/events", "Last-Event-ID", "1", "Last-Event-ID", "2")
	get(http.StatusGone, "Zmiany sprzed tej pozycji nie są już dostępne.", "/api/changes/other/events?since=0")
	get(http.StatusServiceUnavailable, "Trwa wczytywanie danych.", changesOf+"/events?since="+apitest.Sequence(1))
	get(http.StatusNotFound, "Nie znaleziono.", changesOf+"/events/?since=0")
	s := f.follow(t, "?since="+apitest.Sequence(0))
	s.want(at(0), "tick", "")
	get(http.StatusServiceUnavailable, "Serwer jest przeciążony.", changesOf+"/events?since=0")
	f.public.EndFollowing()
	s.ended()
	eventstest.Until(t, func() bool { return f.public.followers.following.count() == 0 })
	get(http.StatusServiceUnavailable, "Serwer jest przeciążony.", changesOf+"/events?since=0")
}

// Ticks come while nothing else does, and end when nothing may be answered; a stream ends after its
// time.
func TestTicks(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = 5 * time.Millisecond
	s := f.follow(t, "?since="+apitest.Sequence(0))
	for range 3 {
		s.want(at(0), "tick", "")
	}
	f.apply(events.Views{Revision: 1, List: events.Scammers, EntryID: "s1", Views: 11})
	for {
		if e, ok := s.next(); !ok || e.name != "tick" {
			t.Fatalf("%+v", e)
		} else if e.id == at(1) {
			break
		}
	}
	f.set(func(s *Readiness) { s.Ready = false })
	s.ended()
	if f.log.String() != "" {
		t.Error(f.log.String())
	}
	f.set(func(s *Readiness) { s.Ready = true })
	f.public.followers.times.tick, f.public.followers.times.life = time.Hour, 500*time.Millisecond
	s = f.follow(t, "?since="+apitest.Sequence(1))
	s.want(at(1), "tick", "")
	s.ended()
}

// fat is an entry whose text is long.
func fat(n int) events.Entry {
	return events.Entry{Revision: 1, List: events.Servers, EntryID: fmt.Sprint("fat", n), ChatID: fmt.Sprint(n), Name: "x", ReportID: "R",
		ReportedAt: asOf(), Reason: strings.Repeat("długi opis ", 1500)}
}

// A follower that reads nothing is cut off, and costs nobody anything; one that comes back with its
// last id has missed nothing.
func TestSlowFollower(t *testing.T) {
	f := serve(t)
	f.public.followers.times.write = 500 * time.Millisecond
	slow, quick := f.follow(t, "?since="+apitest.Sequence(0)), f.follow(t, "?since="+apitest.Sequence(0))
	slow.want(at(0), "tick", "")
	quick.want(at(0), "tick", "")
	done := make(chan bool)
	go func() { // whether the quick one gets everything
		for {
			e, ok := quick.next()
			if !ok || e.name == "set" && strings.Contains(e.data, `"_id":"last"`) {
				done <- ok
				return
			}
		}
	}()
	n := 0
	for ; f.public.followers.following.count() == 2; n++ {
		f.apply(fat(n % 100))
		eventstest.Until(t, func() bool { return f.public.followers.news.Load().view.Load().LastChange() == at(n+1) })
		if n > 2000 {
			t.Fatal("a follower that reads nothing is still there")
		}
	}
	last := fat(0)
	last.EntryID = "last"
	f.apply(last)
	if !<-done {
		t.Error("the quick follower was cut off")
	}
	var had event
	for {
		e, ok := slow.next()
		if !ok {
			break
		}
		had = e
	}
	if had.id >= at(n) {
		t.Fatal("it was not slow")
	}
	back := f.follow(t, "", "Last-Event-ID", strconv.FormatUint(had.id, 10))
	seen := map[string]bool{}
	for e, ok := back.next(); ok && e.name != "tick"; e, ok = back.next() {
		var c struct {
			Entry struct {
				ID string `json:"_id"`
			}
		}
		if err := json.Unmarshal([]byte(e.data), &c); err != nil || e.id <= had.id || seen[c.Entry.ID] {
			t.Fatal(err, e.id, had.id, c)
		}
		seen[c.Entry.ID] = true
	}
	if !seen["last"] {
		t.Error("it missed the last change")
	}
}

// A follower whose connection is full for a while gets each event whole and once, and is sent what
// comes later like the others, in either version of HTTP.
func TestFollowerCatchesUp(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick, f.public.followers.times.write = time.Hour, 20*time.Second
	for _, version := range []string{"1.0", "1.1"} {
		conn, err := net.Dial("tcp", f.addr)
		require.NoError(t, err)
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		from := f.model.View().Sequence()
		request := fmt.Sprintf("GET %s/events?since=%d HTTP/%s\r\nHost: x\r\n\r\n", changesOf, from, version)
		_, err = io.WriteString(conn, request)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		s := &follower{t, resp, bufio.NewScanner(resp.Body), nil}
		s.body.Buffer(nil, 1<<20)
		s.want(from, "tick", "")
		for range 2 {
			first := f.model.View().Sequence() + 1
			last := first
			for ; last < first+20; last++ { // more than the connection takes
				f.apply(fat(int(last)))
				eventstest.Until(t, func() bool { return f.public.followers.news.Load().view.Load().LastChange() == last })
			}
			for seq := first; seq < last; seq++ {
				e, ok := s.next()
				if !ok || e.id != seq || e.name != "set" || !json.Valid([]byte(e.data)) {
					t.Fatalf("HTTP/%s: %v %+v, want %d", version, ok, e, seq)
				}
			}
		}
		conn.Close()
		eventstest.Until(t, func() bool { return f.public.followers.following.count() == 0 })
	}
}
