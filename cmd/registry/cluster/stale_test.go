//go:build !race

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.org/registry/events/eventstest"
)

// TestShorterThaws: the nodes come back with what they had some time ago, which is what a leader that has been left
// behind shows, but for as long as it takes to see it. The replicas freeze, serve what they have, and go on by
// themselves when the nodes have everything again.
func TestShorterThaws(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	js := c.connect()
	c.formed(js)
	one, two := serve(t, t.TempDir(), c.urls(), "--snapshot-every=0"), serve(t, t.TempDir(), c.urls(), "--snapshot-every=0")
	all := eventstest.Events(60, 6)
	eventstest.Publish(t, js, all[:40]...)
	c.restart(func(n *node) { copyDir(t, n.store(), n.old()) })
	until(t, "there is a leader again", func() bool { return info(js, "REGISTRY") != nil })
	last := eventstest.Publish(t, js, all[40:]...)
	for _, r := range []*replica{one, two} {
		until(t, "a replica has everything", func() bool { return r.well(t, last) })
	}
	before := one.projection(t)
	c.restart(func(n *node) { rename(t, n.store(), n.full()); rename(t, n.old(), n.store()) })
	for _, r := range []*replica{one, two} {
		until(t, "a replica is frozen", func() bool { return strings.Contains(r.said(), `"frozen`) })
		if p := r.projection(t); p.Digest != before.Digest || p.Checkpoint != last || p.LastError == nil {
			t.Errorf("frozen: %+v, before: %+v", p, before)
		}
		if a := get(t, r.HTTP+"/api/scammers", nil); a.status != 200 {
			t.Errorf("frozen: %d %s", a.status, a.body)
		}
	}
	c.restart(func(n *node) { rename(t, n.store(), n.old()); rename(t, n.full(), n.store()) })
	for _, r := range []*replica{one, two} {
		took := until(t, "a replica has thawed", func() bool { return r.well(t, last) })
		t.Log("thawed after ", took, ", an election included")
	}
	more := eventstest.Publish(t, js, eventstest.Events(61, 6)[60:]...)
	agree(t, c, more, one, two)
}

func (n *node) old() string  { return filepath.Join(n.dir, "old") }
func (n *node) full() string { return filepath.Join(n.dir, "full") }

// restart stops all nodes, does something to each, and starts them.
func (c *nodes) restart(between func(n *node)) {
	c.t.Helper()
	for i := range c.all {
		c.kill(i)
	}
	for i, n := range c.all {
		between(n)
		c.start(i)
	}
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
