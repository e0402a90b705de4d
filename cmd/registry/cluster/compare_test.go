//go:build unix && !race && nightly

package cluster

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"testing"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// agree checks that replicas are at the stream's end with one digest, that their answers are byte
// for byte the same in every coding, and that "registry verify" finds no difference.
func agree(t *testing.T, c *nodes, sequence uint64, replicas ...*replica) {
	t.Helper()
	for _, r := range replicas {
		until(t, "a replica is at the end", func() bool { return r.well(t, sequence) && r.projection(t).Lag == 0 })
	}
	first := replicas[0].projection(t)
	for _, r := range replicas[1:] {
		if p := r.projection(t); p.Digest != first.Digest || p.Checkpoint != first.Checkpoint || p.Epoch != first.Epoch {
			t.Errorf("replicas differ: %+v and %+v", first, p)
		}
		for _, path := range append([]string{"/api/scammers?limit=60&sort=popular", "/api/check?id=" + eventstest.Entries(1, 6)[0].ChatID}, registrytest.Paths()...) {
			for _, coding := range []string{"identity", "gzip"} {
				sameAnswer(t, replicas[0], r, path, coding)
			}
		}
	}
	for _, r := range replicas {
		if _, err := r.command(t.Context(), c.urls(), "verify"); err != nil {
			t.Error(err)
		}
	}
}

func sameAnswer(t *testing.T, one, other *replica, path, coding string) {
	t.Helper()
	header := http.Header{"Accept-Encoding": {coding}}
	a, b := get(t, one.HTTP+path, header), get(t, other.HTTP+path, header)
	if a.Status != 200 || b.Status != 200 || !bytes.Equal(a.Body, b.Body) {
		t.Errorf("%s %s: %d with %d bytes and %d with %d bytes", path, coding, a.Status, len(a.Body), b.Status, len(b.Body))
	}
	for _, name := range []string{"Etag", "Registry-Sequence", "Content-Encoding", "Cache-Control", "Vary", "Content-Type"} {
		if a.Header.Get(name) != b.Header.Get(name) {
			t.Errorf("%s %s: %s is %q and %q", path, coding, name, a.Header.Get(name), b.Header.Get(name))
		}
	}
	header["If-None-Match"] = []string{a.Header.Get("Etag")}
	if again := get(t, other.HTTP+path, header); again.Status != http.StatusNotModified {
		t.Errorf("%s %s: %d for the other replica's tag %s", path, coding, again.Status, a.Header.Get("Etag"))
	}
}

// shown checks that a replica shows exactly what has been acknowledged: the lists, and some checks. The
// backend must not publish during it.
func (b *backend) shown(ctx context.Context, r *replica, rng *rand.Rand) error {
	var pool []events.Entry
	for range 40 {
		pool = append(pool, b.entries[rng.IntN(len(b.entries))])
	}
	if err := registrytest.Same(ctx, r.HTTP, b.twin, pool); err != nil {
		b.report.fail("the %s replica: %v", r.name, err)
	}
	return ctx.Err()
}
