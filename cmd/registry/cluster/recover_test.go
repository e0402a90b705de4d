//go:build unix && !race

package cluster

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// TestRecover: a cluster has lost its stream. registry recover is killed while it publishes, and run
// again: both replicas then have what they had, and a third run publishes nothing.
func TestRecover(t *testing.T) {
	long(t)
	t.Parallel()
	c, js := startNodes(t)
	one := serve(t, t.TempDir(), c.urls(), "--snapshot-every=0")
	two := serve(t, t.TempDir(), c.urls(), "--snapshot-every=0")
	const entries = 30_000 // so many that recover can be killed in the midst
	messages := make([]publish.Message, entries)
	for i, e := range eventstest.Events(entries, 6) {
		messages[i].Event = e
	}
	sum, err := publish.New(js, publish.Config{}).PublishAll(t.Context(), messages)
	require.NoError(t, err)
	agree(t, c, sum.LastSequence, one, two)
	before := one.projection(t)
	require.NoError(t, js.DeleteStream(t.Context(), events.DefaultStream))
	until(t, "both replicas miss it", func() bool { return !one.well(t, 0) && !two.well(t, 0) })

	again := []string{"recover", "--create-stream", "--stream-replicas=3", "--yes"}
	first := exec.CommandContext(t.Context(), registry, again...)
	first.Env = append(os.Environ(), "REGISTRY_ADMIN_ADDR="+one.AdminAddr(), "REGISTRY_NATS_URL="+strings.Join(c.urls(), ","))
	require.NoError(t, first.Start())
	for begun := false; !begun && t.Context().Err() == nil; { // a stream that has no leader yet does not answer
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		s, err := js.Stream(ctx, events.DefaultStream)
		begun = err == nil && s.CachedInfo().State.Msgs > 0
		cancel()
	}
	require.NoError(t, first.Process.Kill())
	if err := first.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	if i := info(js, events.DefaultStream); i == nil || i.State.Msgs >= entries {
		t.Fatalf("killed too late: %+v", i)
	}

	if _, err := one.command(t.Context(), c.urls(), again...); err != nil {
		t.Fatal(err)
	}
	if _, err := two.command(t.Context(), c.urls(), "rebuild", "--accept-stream"); err != nil {
		t.Fatal(err)
	}
	agree(t, c, info(js, events.DefaultStream).State.LastSeq, one, two)
	if now := one.projection(t); now.Digest != before.Digest || now.StreamEpoch == before.StreamEpoch {
		t.Errorf("before the loss %+v, recovered %+v", before, now)
	}
	if said, err := two.command(t.Context(), c.urls(), again...); err != nil || !strings.Contains(said, "published: 0\n") {
		t.Errorf("a third run says %q, %v", said, err)
	}
}
