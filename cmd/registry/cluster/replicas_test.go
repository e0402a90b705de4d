//go:build unix && !race && nightly

package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// TestReplicas: the first replica creates everything with three copies. The second starts from the
// first's snapshot. They agree, and a reader sees its own writes at either.
func TestReplicas(t *testing.T) {
	long(t)
	t.Parallel()
	c, js := startNodes(t)
	one := serve(t, t.TempDir(), c.urls(), "--snapshot-every=2s")
	last := eventstest.Publish(t, js, eventstest.Events(500, 6)...)
	last = max(last, eventstest.PublishRaw(t, js, "registry.scammers.bad", []byte("{}")))
	until(t, "a snapshot of everything", func() bool { return snapshotted(js, last) })
	two := serve(t, t.TempDir(), c.urls(), "--snapshot-every=2s")
	if !strings.Contains(two.Log(), "starting from a snapshot") {
		t.Error("the second replica did not start from a snapshot")
	}
	agree(t, c, last, one, two)
	for _, name := range []string{events.DefaultStream, events.RejectedStream, "OBJ_REGISTRY_SNAPSHOTS"} {
		if i := info(js, name); i == nil || i.Config.Replicas != 3 {
			t.Errorf("stream %s: %+v", name, i)
		}
	}
	until(t, "two consumers for two replicas", func() bool { // that of a command may outlive it by a minute
		i := info(js, events.DefaultStream)
		return i != nil && i.State.Consumers == 2
	})
	for i, e := range eventstest.Events(40, 7) {
		sequence := strconv.FormatUint(eventstest.Publish(t, js, e), 10)
		for _, r := range []*replica{one, two} {
			own := get(t, r.HTTP+"/api/check?id="+e.Data.(events.Entry).ChatID, http.Header{"Registry-Min-Sequence": {sequence}})
			if own.Status != 200 || own.Header.Get("Registry-Sequence") < sequence && len(own.Header.Get("Registry-Sequence")) <= len(sequence) {
				t.Errorf("own write %d at %s: %d at %s", i, sequence, own.Status, own.Header.Get("Registry-Sequence"))
			}
		}
	}
	now := info(js, events.DefaultStream).State.LastSeq
	until(t, "a snapshot of what came since", func() bool { return snapshotted(js, now) })
	agree(t, c, now, one, two)
}

// snapshotted reports whether there is a snapshot at the sequence or after it.
func snapshotted(js jetstream.JetStream, sequence uint64) bool {
	// The library's List waits forever if the last object is pruned while it lists, so the caller
	// asks again.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	store, err := js.ObjectStore(ctx, "REGISTRY_SNAPSHOTS")
	if err != nil {
		return false
	}
	all, err := store.List(ctx)
	for _, o := range all {
		at, _ := strconv.ParseUint(strings.Split(o.Name+"---", "-")[2], 10, 64) // NAME-STREAM-SEQUENCE-…; 0 is of no use
		if at >= sequence {
			return err == nil
		}
	}
	return false
}

// TestForming: a replica that must create a stream of three copies starts before any node, and the
// third node starts late, as when everything starts at once. It waits, says for what, answers
// nobody, and creates the stream once it has the third.
func TestForming(t *testing.T) {
	long(t)
	t.Parallel()
	c := prepareNodes(t, 2)
	r := launch(t, t.TempDir(), c.urls(), "--snapshot-every=0")
	if a := get(t, r.HTTP+"/api/scammers", nil); a.Status != http.StatusServiceUnavailable {
		t.Errorf("without a broker: %d %s", a.Status, a.Body)
	}
	c.start(0)
	c.start(1)
	until(t, "it says that nodes are missing", func() bool {
		a := get(t, r.Admin+"/readyz", nil)
		return a.Status == http.StatusServiceUnavailable &&
			strings.Contains(string(a.Body), "waiting for nodes of the broker's cluster: too few are up for 3 replicas")
	})
	c.start(2)
	require.NoError(t, r.WaitReady(t.Context()))
	if i := info(c.connect(), events.DefaultStream); i == nil || i.Config.Replicas != 3 {
		t.Errorf("the stream: %+v", i)
	}
}

// TestCutOff: one replica of two is cut off from every node. It goes on answering with what it has,
// and says so. A reader who needs newer data is refused there and served by the other. Later it
// catches up by itself.
func TestCutOff(t *testing.T) {
	long(t)
	t.Parallel()
	c, js := startNodes(t)
	var relays []*eventstest.Relay
	var through []string
	for _, n := range c.all {
		r, err := eventstest.StartRelay(n.addr)
		require.NoError(t, err)
		t.Cleanup(r.Close)
		relays, through = append(relays, r), append(through, "nats://"+r.Addr())
	}
	near := serve(t, t.TempDir(), c.urls(), "--snapshot-every=0")
	b, end := publishing(t, js)
	far := serve(t, t.TempDir(), through, "--snapshot-every=0")
	filled(t, js, near, far)
	for _, r := range []*replica{near, far} {
		registrytest.StartReaders(t, r.HTTP, 1)
	}
	for round := range times(2, 10) {
		before := b.last.Load()
		until(t, "the far replica follows", func() bool { return far.well(t, before) })
		for _, r := range relays {
			r.Blackhole(true)
		}
		took := until(t, "the far replica notices", func() bool { return far.projection(t).LastError != nil })
		stood := far.projection(t).Checkpoint
		until(t, "events are published meanwhile", func() bool { return b.last.Load() > stood+100 })
		now := b.last.Load()
		own := http.Header{"Registry-Min-Sequence": {fmt.Sprint(now)}}
		if a := get(t, near.HTTP+"/api/legit", own); a.Status != http.StatusOK {
			t.Errorf("own write at the near replica: %d %s", a.Status, a.Body)
		}
		if a := get(t, far.HTTP+"/api/legit", own); a.Status != http.StatusServiceUnavailable {
			t.Errorf("own write at the replica that is cut off: %d at %s", a.Status, a.Header.Get("Registry-Sequence"))
		}
		if a := get(t, far.Admin+"/readyz", nil); a.Status != http.StatusOK {
			t.Errorf("readyz of the replica that is cut off: %d", a.Status)
		}
		for _, r := range relays {
			r.Blackhole(false)
		}
		healing := until(t, "the far replica catches up", func() bool { return far.well(t, now) })
		t.Logf("cut off %d: noticed after %v, in step after %v", round, took.Round(time.Millisecond), healing.Round(time.Millisecond))
	}
	end()
	agree(t, c, lastOf(t, js), near, far)
	require.NoError(t, b.shown(t.Context(), far, rand.New(rand.NewPCG(6, 6))))
}
