package httpapi

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/readmodel"
)

// The cached header values always belong to the state that was asked for.
func TestStateHeadersBelongToTheirView(t *testing.T) {
	f := serve(t)
	var cache stateHeaderCache
	var views []*readmodel.View
	for range 3 {
		views = append(views, f.model.View())
		f.apply(apitest.People()[0])
	}
	for _, i := range []int{0, 1, 0, 2, 2, 1, 1, 0} {
		for _, at := range []time.Time{asOf(), asOf().Add(time.Duration(i) * time.Second)} {
			h := cache.headersFor(views[i], at)
			if h.Sequence[0] != strconv.FormatUint(views[i].Sequence(), 10) || h.AsOf[0] != body.Time(at) {
				t.Errorf("view %d at %v: %v %v", i, at, h.Sequence, h.AsOf)
			}
			if h.tags.check.Plain() != `"`+views[i].CheckTag()+`"` {
				t.Errorf("view %d: tag %s", i, h.tags.check.Plain())
			}
		}
	}
}

// Nobody is told to show an old list for longer than the operator says, nor what the service itself
// would not.
func TestStaleIfError(t *testing.T) {
	for _, c := range []struct{ staleIfError, maxStaleness, want time.Duration }{
		{0, 0, 0},
		{0, time.Minute, 0},
		{time.Hour, 0, time.Hour},
		{48 * time.Hour, 0, 48 * time.Hour},
		{time.Hour, 90*time.Second + time.Millisecond, 90 * time.Second},
		{time.Minute, time.Hour, time.Minute},
	} {
		f := serve(t, func(cfg *Config) { cfg.StaleIfError, cfg.Health.MaxStaleness = c.staleIfError, c.maxStaleness })
		f.set(func(s *Readiness) { s.AsOf = time.Now() })
		want := fmt.Sprintf("max-age=10, stale-while-revalidate=20, stale-if-error=%.0f", c.want.Seconds())
		if got := f.get(t, "/api/scammers").header.Get("CDN-Cache-Control"); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

// Promise 2 (readmodel/doc.go): sequence, tag and body are of one state.
func TestStateHeaders(t *testing.T) {
	f := serve(t)
	for _, target := range []string{"/api/scammers", "/api/check?id=1", "/api/donate/status?id=d-1", "/api/donate/status?id=d-2"} {
		a := f.get(t, target)
		if got := a.header.Get("Registry-Sequence"); got != apitest.Sequence(0) {
			t.Errorf("%s: Registry-Sequence %q", target, got)
		}
		if got := a.header.Get("Registry-As-Of"); got != "2026-11-21T10:15:00.007Z" {
			t.Errorf("%s: Registry-As-Of %q", target, got)
		}
	}
	f.set(func(s *Readiness) { s.AsOf = asOf().Add(time.Second).In(time.FixedZone("CET", 3600)) })
	f.apply(apitest.People()[0])
	a := f.get(t, "/api/scammers")
	if s, as := a.header.Get("Registry-Sequence"), a.header.Get("Registry-As-Of"); s != apitest.Sequence(1) || as != "2026-11-21T10:15:01.007Z" {
		t.Errorf("after a change: %q %q", s, as)
	}
}
