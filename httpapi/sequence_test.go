package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.org/registry/readmodel"
)

func positioned() []string {
	return []string{"/api/scammers", "/api/servers", "/api/legit", "/api/check?id=1", "/api/donate/status?id=d-1"}
}

// Promise 7: before the model has caught up nobody is told that a list is empty.
func TestNotReady(t *testing.T) {
	f := serve(t)
	f.set(func(s *State) { s.Ready = false })
	for _, target := range positioned() {
		a := f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, target, "If-None-Match", "*")
		if a.header.Get("Retry-After") != "5" || a.header.Get("Registry-Sequence") != "" {
			t.Errorf("%s: %v", target, a.header)
		}
	}
	f.set(func(s *State) { s.Ready = true })
	if a := f.get(t, "/api/scammers"); a.status != http.StatusOK {
		t.Errorf("ready: %d", a.status)
	}
}

func TestMaxStaleness(t *testing.T) {
	f := serve(t, func(c *Config) { c.Health.MaxStaleness = time.Hour })
	for _, c := range []struct {
		asOf   time.Time
		status int
	}{
		{time.Now().Add(-2 * time.Hour), http.StatusServiceUnavailable},
		{time.Time{}, http.StatusServiceUnavailable},
		{time.Now().Add(-30 * time.Minute), http.StatusOK},
		{time.Now().Add(time.Hour), http.StatusOK},
	} {
		f.set(func(s *State) { s.AsOf = c.asOf })
		for _, target := range positioned() {
			if a := f.get(t, target); a.status != c.status {
				t.Errorf("as of %v: %s: %d, want %d", c.asOf, target, a.status, c.status)
			}
		}
	}
}

// The fixture shows four scammers, two servers and two of legit.
func TestMinEntries(t *testing.T) {
	for least, status := range map[int]int{8: http.StatusOK, 9: http.StatusServiceUnavailable} {
		f := serve(t, func(c *Config) { c.Health.MinEntries = least })
		for _, target := range positioned() {
			if a := f.get(t, target); a.status != status {
				t.Errorf("at least %d: %s: %d, want %d", least, target, a.status, status)
			}
		}
	}
}

func TestMinSequenceValues(t *testing.T) {
	f := serve(t)
	for _, target := range positioned() {
		for _, bad := range []string{"x", "-1", "+1", "1.0", "1e1", "0x1", "1 2", "18446744073709551616", "٣", "1,2", `"1"`} {
			f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: Registry-Min-Sequence.", http.MethodGet, target, minSeqHeader, bad)
		}
		f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: Registry-Min-Sequence.", http.MethodGet, target,
			minSeqHeader, "1", minSeqHeader, "1")
		for _, reached := range []string{"0", "14", "0000000000000000000000014"} {
			a := f.get(t, target, minSeqHeader, reached)
			if a.status != http.StatusOK || a.header.Get("Cache-Control") != "no-store" || a.header.Get("CDN-Cache-Control") != "" {
				t.Errorf("%s at least %s: %d %v", target, reached, a.status, a.header)
			}
		}
		if a := f.get(t, target, minSeqHeader, " "); a.status != http.StatusOK {
			t.Errorf("%s: an empty header: %d", target, a.status)
		}
	}
	a := f.get(t, "/api/scammers", minSeqHeader, "14", "If-None-Match", "*")
	if a.status != http.StatusNotModified || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("conditional: %d %v", a.status, a.header)
	}
}

// An answer at a sequence waits for it and is never older.
func TestMinSequenceWaits(t *testing.T) {
	f := serve(t)
	got := make(chan *answer)
	go func() { got <- f.get(t, "/api/donate/status?id=d-1", minSeqHeader, "15") }()
	eventually(t, func() bool { return f.public.admitter.waiting.Load() == 1 })
	f.apply(people()[0])
	if a := <-got; a.status != http.StatusOK || a.header.Get("Registry-Sequence") != "15" {
		t.Errorf("%d %v", a.status, a.header)
	}
	if n := f.public.admitter.waiting.Load(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

func TestMinSequenceTimesOut(t *testing.T) {
	f := serve(t)
	if f.public.admitter.wait != 2*time.Second {
		t.Errorf("waits up to %v", f.public.admitter.wait)
	}
	f.public.admitter.wait = time.Millisecond
	for _, target := range positioned() {
		a := f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, target, minSeqHeader, "18446744073709551615")
		if got := a.header.Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After %q", got)
		}
	}
}

// Frozen, waiting is in vain: the answer is immediate. A long wait would exceed the test's time.
func TestMinSequenceFrozen(t *testing.T) {
	f := serve(t)
	f.public.admitter.wait = time.Hour
	f.set(func(s *State) { s.Frozen = true })
	f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/scammers", minSeqHeader, "15")
	if a := f.get(t, "/api/scammers", minSeqHeader, "14"); a.status != http.StatusOK {
		t.Errorf("a sequence already reached: %d", a.status)
	}
	if a := f.get(t, "/api/scammers"); a.status != http.StatusOK {
		t.Errorf("frozen: %d", a.status)
	}
}

// At most 256 wait; who has reached his sequence does not.
func TestMinSequenceCrowd(t *testing.T) {
	f := serve(t)
	f.public.admitter.waiting.Store(maxWaiting)
	a := f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, "/api/scammers", minSeqHeader, "15")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("%v", a.header)
	}
	if a := f.get(t, "/api/scammers", minSeqHeader, "14"); a.status != http.StatusOK {
		t.Errorf("reached: %d", a.status)
	}
	f.public.admitter.waiting.Store(maxWaiting - 1)
	got := make(chan *answer)
	go func() { got <- f.get(t, "/api/scammers", minSeqHeader, "15") }()
	eventually(t, func() bool { return f.public.admitter.waiting.Load() == maxWaiting })
	f.apply(people()[0])
	if a := <-got; a.status != http.StatusOK {
		t.Errorf("the 256th: %d", a.status)
	}
	if maxWaiting != 256 {
		t.Errorf("%d may wait", maxWaiting)
	}
}

// A reader that goes away stops waiting, for a sequence and for a search.
func TestReaderGoesAway(t *testing.T) {
	f := serve(t, func(c *Config) { c.Searches = SearchLimits{Running: 1, Wait: time.Hour} })
	f.public.admitter.wait = time.Hour
	leave, err := f.public.searches.enter(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	for target, waiting := range map[string]func() int64{
		"/api/scammers":               f.public.admitter.waiting.Load,
		"/api/scammers?search=adamek": f.public.searches.waiting.Load,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.addr+target, nil)
		if !strings.Contains(target, "search") {
			req.Header.Set(minSeqHeader, "99")
		}
		gone := make(chan error)
		go func() {
			resp, err := f.client.Do(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			gone <- err
		}()
		eventually(t, func() bool { return waiting() == 1 })
		cancel()
		if err := <-gone; err == nil {
			t.Errorf("%s: answered", target)
		}
		eventually(t, func() bool { return waiting() == 0 })
	}
}

// Promise 5: lists and look-ups by id do not stand behind searches.
func TestSearchesAreBounded(t *testing.T) {
	f := serve(t, func(c *Config) { c.Searches = SearchLimits{Running: 1, Waiting: 2, Wait: time.Hour} })
	leave, err := f.public.searches.enter(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *answer)
	for _, target := range []string{"/api/scammers?search=adam", "/api/check?search=adam"} {
		go func() { got <- f.get(t, target) }()
	}
	eventually(t, func() bool { return f.public.searches.waiting.Load() == 2 })
	a := f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, "/api/legit?search=adam")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("%v", a.header)
	}
	for _, target := range []string{"/api/scammers", "/api/scammers?id=1&search=adam", "/api/check?id=1", "/api/check?search=<@1>"} {
		if a := f.get(t, target); a.status != http.StatusOK {
			t.Errorf("%s stood behind a search: %d", target, a.status)
		}
	}
	leave()
	for range 2 {
		if a := <-got; a.status != http.StatusOK {
			t.Errorf("a search that waited: %d", a.status)
		}
	}
}

func TestSearchWaitIsBounded(t *testing.T) {
	s := newSearches(SearchLimits{Running: 1, Wait: time.Nanosecond})
	leave, err := s.enter(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.enter(t.Context(), true); err != errBusy {
		t.Errorf("got %v", err)
	}
	leave()
	if leave, err = s.enter(t.Context(), true); err != nil {
		t.Errorf("after the first left: %v", err)
	}
	leave()
}

// eventually waits until the condition holds.
func eventually(t testing.TB, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	timeout := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal("never happened")
		}
	}
}

// The cached header values always belong to the state that was asked for.
func TestHeadsBelongToTheirView(t *testing.T) {
	f := serve(t)
	var cache headCache
	var views []*readmodel.View
	for range 3 {
		views = append(views, f.model.View())
		f.apply(people()[0])
	}
	for _, i := range []int{0, 1, 0, 2, 2, 1, 1, 0} {
		for _, at := range []time.Time{asOf(), asOf().Add(time.Duration(i) * time.Second)} {
			h := cache.of(views[i], at)
			if h.sequence[0] != strconv.FormatUint(views[i].Sequence(), 10) || h.asOfText[0] != stamp(at) {
				t.Errorf("view %d at %v: %v %v", i, at, h.sequence, h.asOfText)
			}
			if h.tags.check.quoted[identity] != `"`+views[i].CheckTag()+`"` {
				t.Errorf("view %d: tag %s", i, h.tags.check.quoted[identity])
			}
		}
	}
}
