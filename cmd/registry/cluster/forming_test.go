//go:build !race

package cluster

import (
	"net/http"
	"strings"
	"testing"

	"example.org/registry/events"
)

// TestForming: a replica that is to make a stream of three copies comes before any node, and the third node late, as when
// everything is started at once. It waits, says for what, answers nobody, and makes the stream when the third is there.
func TestForming(t *testing.T) {
	t.Parallel()
	c := prepareNodes(t, 2)
	r, ready := launch(t, t.TempDir(), c.urls(), "--snapshot-every=0")
	if a := get(t, r.HTTP+"/api/scammers", nil); a.status != http.StatusServiceUnavailable {
		t.Errorf("without a broker: %d %s", a.status, a.body)
	}
	c.start(0)
	c.start(1)
	until(t, "it says that nodes are missing", func() bool {
		a := get(t, r.Admin+"/readyz", nil)
		return a.status == http.StatusServiceUnavailable &&
			strings.Contains(string(a.body), "waiting for nodes of the broker's cluster: too few are up for 3 replicas")
	})
	c.start(2)
	r.await(t, ready, "ready")
	if i := info(c.connect(), events.DefaultStream); i == nil || i.Config.Replicas != 3 {
		t.Errorf("the stream: %+v", i)
	}
}
