package httpapi

import (
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

func positioned() []string {
	return []string{"/api/scammers", "/api/servers", "/api/legit", "/api/check?id=1", "/api/donate/status?id=d-1"}
}

// Unknown is never clean. Before the model has caught up, once it is too old, and with too few
// entries, nobody is told that a list is empty.
func TestReadiness(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Config)
		state   Readiness
		answers bool
	}{
		"caught up":      {func(*Config) {}, Readiness{Ready: true, AsOf: asOf()}, true},
		"not caught up":  {func(*Config) {}, Readiness{AsOf: time.Now()}, false},
		"frozen":         {func(*Config) {}, Readiness{Ready: true, Frozen: true, AsOf: asOf()}, true},
		"fresh enough":   {func(c *Config) { c.Health.MaxStaleness = time.Hour }, Readiness{Ready: true, AsOf: time.Now().Add(-30 * time.Minute)}, true},
		"too old":        {func(c *Config) { c.Health.MaxStaleness = time.Hour }, Readiness{Ready: true, AsOf: time.Now().Add(-2 * time.Hour)}, false},
		"never complete": {func(c *Config) { c.Health.MaxStaleness = time.Hour }, Readiness{Ready: true}, false},
		"enough entries": {func(c *Config) { c.Health.MinEntries = apitest.Shown() }, Readiness{Ready: true, AsOf: asOf()}, true},
		"too few":        {func(c *Config) { c.Health.MinEntries = apitest.Shown() + 1 }, Readiness{Ready: true, AsOf: asOf()}, false},
	} {
		f := serve(t, c.change)
		f.set(func(s *Readiness) { *s = c.state })
		for _, target := range positioned() {
			if c.answers {
				require.Equal(t, http.StatusOK, f.get(t, target).status, "%s: %s", name, target)
				continue
			}
			a := f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, target, "If-None-Match", "*")
			require.Equal(t, []string{"5", ""}, []string{a.header.Get("Retry-After"), a.header.Get("Registry-Sequence")}, name)
		}
	}
}

// Sequence, time and body are of one state.
func TestStateHeaders(t *testing.T) {
	f := serve(t)
	state := func(target string) string {
		h := f.get(t, target).header
		return h.Get("Registry-Sequence") + " " + h.Get("Registry-As-Of")
	}
	for _, target := range []string{"/api/scammers", "/api/check?id=1", "/api/donate/status?id=d-1", "/api/donate/status?id=d-2"} {
		require.Equal(t, apitest.Sequence(0)+" 2026-11-21T10:15:00.007Z", state(target), target)
	}
	f.set(func(s *Readiness) { s.AsOf = asOf().Add(time.Second).In(time.FixedZone("CET", 3600)) })
	f.apply(apitest.People()[0])
	require.Equal(t, apitest.Sequence(1)+" 2026-11-21T10:15:01.007Z", state("/api/scammers"))
}

// Nobody is told to show an old list for longer than the operator says, nor what the service itself would not.
func TestStaleIfError(t *testing.T) {
	for _, c := range []struct{ staleIfError, maxStaleness, want time.Duration }{
		{0, time.Minute, 0}, {48 * time.Hour, 0, 48 * time.Hour}, {time.Hour, 90*time.Second + time.Millisecond, 90 * time.Second}, {time.Minute, time.Hour, time.Minute},
	} {
		want := fmt.Sprintf("max-age=10, stale-while-revalidate=20, stale-if-error=%.0f", c.want.Seconds())
		require.Equal(t, want, listPolicy(c.staleIfError, c.maxStaleness).cdn, "%+v", c)
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
		for _, reached := range []string{"0", apitest.Sequence(0), strings.Repeat("0", 23) + apitest.Sequence(0)} {
			a := f.get(t, target, minSeqHeader, reached)
			require.Equal(t, "200 no-store ", fmt.Sprint(a.status, " ", a.header.Get("Cache-Control"), " ", a.header.Get("CDN-Cache-Control")), target)
		}
		require.Equal(t, http.StatusOK, f.get(t, target, minSeqHeader, " ").status, "an empty header is absent")
	}
	a := f.get(t, "/api/scammers", minSeqHeader, apitest.Sequence(0), "If-None-Match", "*")
	require.Equal(t, "304 no-store", fmt.Sprint(a.status, " ", a.header.Get("Cache-Control")))
}

// An answer at a sequence waits for it, up to 2 s, and is never older. At most 256 wait, and none while waiting is useless.
func TestMinSequenceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		got := make(chan *response)
		go func() { got <- f.get(t, "/api/donate/status?id=d-1", minSeqHeader, apitest.Sequence(1)) }()
		synctest.Wait()
		require.Len(t, f.public.sequenceWaiting, 1)
		f.apply(apitest.People()[0])
		a := <-got
		require.Equal(t, "200 "+apitest.Sequence(1), fmt.Sprint(a.status, " ", a.header.Get("Registry-Sequence")))
		require.Empty(t, f.public.sequenceWaiting)

		began := time.Now()
		a = f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/scammers", minSeqHeader, "18446744073709551615")
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, "1", a.header.Get("Retry-After"))

		require.Equal(t, 256, cap(f.public.sequenceWaiting))
		f.public.sequenceWaiting = newPlaces(0)
		a = f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, "/api/scammers", minSeqHeader, apitest.Sequence(2))
		require.Equal(t, "1", a.header.Get("Retry-After"))
		require.Equal(t, http.StatusOK, f.get(t, "/api/scammers", minSeqHeader, apitest.Sequence(1)).status, "a sequence that is reached")
		f.set(func(s *Readiness) { s.Frozen = true })
		f.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/scammers", minSeqHeader, apitest.Sequence(2))
		require.Equal(t, http.StatusOK, f.get(t, "/api/scammers", minSeqHeader, apitest.Sequence(1)).status, "frozen, a sequence that is reached")
	})
}

// The awaited event may be the one that makes enough entries.
func TestMinSequenceWaitsForEnoughEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.public.health.MinEntries = f.model.View().Total() + 1
		got := make(chan *response)
		go func() { got <- f.get(t, "/api/scammers", minSeqHeader, apitest.Sequence(1)) }()
		synctest.Wait()
		require.Len(t, f.public.sequenceWaiting, 1)
		entry := eventstest.Entries(1, 1)[0]
		entry.List, entry.Verified = events.Scammers, true
		f.apply(entry)
		require.Equal(t, http.StatusOK, (<-got).status)
	})
}
