package httpapi

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"example.org/registry/httpapi/upstream"
)

func statusIn(t testing.TB, a *response) (s statusBody) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &s); err != nil {
		t.Fatalf("%v in %q", err, a.body)
	}
	return s
}

// The body over HTTP: four components in order, UTC with milliseconds, nothing configured.
func TestStatusUnconfigured(t *testing.T) {
	f := serve(t)
	before := time.Now().Add(-time.Millisecond)
	a := f.get(t, "/api/status?x=1")
	got := statusIn(t, a)
	for i, id := range []string{"database", "guard", "chat", "coin"} {
		if want := (upstream.Component{ID: id}); got.Checks[i] != want {
			t.Errorf("%+v, want %+v", got.Checks[i], want)
		}
	}
	at, err := time.Parse("2006-01-02T15:04:05.000Z", got.CheckedAt)
	if err != nil || at.Before(before) || at.After(time.Now()) {
		t.Errorf("checkedAt %q: %v", got.CheckedAt, err)
	}
	if a.header.Get("Registry-Sequence") != "" || a.header.Get("Etag") != "" {
		t.Errorf("headers %v", a.header)
	}
}

// database is false until the model has caught up, and while it is frozen. Else the store and the stream are asked.
func TestStatusOfDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		ok     bool
		asks   int64
		change func(*Config, *Readiness)
	}{
		"caught up":     {true, 1, func(*Config, *Readiness) {}},
		"not caught up": {false, 0, func(_ *Config, s *Readiness) { s.Ready = false }},
		"frozen":        {false, 0, func(_ *Config, s *Readiness) { s.Frozen = true }},
		"out of touch":  {true, 1, func(c *Config, _ *Readiness) { c.Health.MaxStaleness = time.Minute }},
		"too few":       {true, 1, func(c *Config, _ *Readiness) { c.Health.MinEntries = 1000 }},
	} {
		var asked atomic.Int64
		state := Readiness{Ready: true, AsOf: asOf()}
		f := serve(t, func(cfg *Config) {
			cfg.Status.Database = func(context.Context) error { asked.Add(1); return nil }
			c.change(cfg, &state)
		})
		f.set(func(s *Readiness) { *s = state })
		got := statusIn(t, f.get(t, "/api/status"))
		if got.Checks[0].OK != c.ok || asked.Load() != c.asks {
			t.Errorf("%s: %+v after %d questions", name, got.Checks[0], asked.Load())
		}
	}
}
