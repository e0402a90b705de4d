//go:build !race

package cluster

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"example.org/registry/events/eventstest/relay"
)

// TestCutOff: one replica of two is cut off from every node. It goes on answering, with what it has, and says so; a
// reader who needs newer is refused there and served by the other; it catches up by itself.
func TestCutOff(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	js := c.connect()
	c.formed(js)
	var relays []*relay.Relay
	var through []string
	for _, n := range c.all {
		r, err := relay.Start(n.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		relays, through = append(relays, r), append(through, "nats://"+r.Addr())
	}
	near := serve(t, t.TempDir(), c.urls(), "--snapshot-every=0")
	w := writing(t, js)
	until(t, "there are entries", func() bool { n, _ := w.done(); return n >= len(w.entries) })
	far := serve(t, t.TempDir(), through, "--snapshot-every=0")
	readers := []*reader{reading(t, near.HTTP, true), reading(t, far.HTTP, true)}
	for round := range times(2, 10) {
		_, before := w.done()
		until(t, "the far replica follows", func() bool { return far.well(t, before) })
		for _, r := range relays {
			r.Blackhole(true)
		}
		took := until(t, "the far replica notices", func() bool { return far.projection(t).LastError != nil })
		stood := far.projection(t).Checkpoint
		until(t, "events are published meanwhile", func() bool { _, now := w.done(); return now > stood+100 })
		_, now := w.done()
		own := http.Header{"Registry-Min-Sequence": {fmt.Sprint(now)}}
		if a := get(t, near.HTTP+"/api/legit", own); a.status != http.StatusOK {
			t.Errorf("own write at the near replica: %d %s", a.status, a.body)
		}
		if a := get(t, far.HTTP+"/api/legit", own); a.status != http.StatusServiceUnavailable {
			t.Errorf("own write at the replica that is cut off: %d at %s", a.status, a.header.Get("Registry-Sequence"))
		}
		if a := get(t, far.Admin+"/readyz", nil); a.status != http.StatusOK {
			t.Errorf("readyz of the replica that is cut off: %d", a.status)
		}
		for _, r := range relays {
			r.Blackhole(false)
		}
		healing := until(t, "the far replica catches up", func() bool { return far.well(t, now) })
		t.Logf("cut off %d: noticed after %v, in step after %v", round, took.Round(time.Millisecond), healing.Round(time.Millisecond))
	}
	w.end()
	_, last := w.done()
	for _, r := range readers {
		r.flawless(t)
	}
	agree(t, c, max(last, info(js, "REGISTRY").State.LastSeq), near, far)
	w.kept(t, far)
}
