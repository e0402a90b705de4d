//go:build !race

package cluster

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// balancer sends each request to the next replica that was ready when it last looked. Like every balancer it takes
// another one where nobody listens any more; a connection that breaks later is a failure that readers see.
type balancer struct {
	mu      sync.Mutex
	ready   []*replica
	turn    atomic.Uint64
	retried atomic.Int64
	inner   http.RoundTripper
}

func (b *balancer) set(ready ...*replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = ready
}

func (b *balancer) next() *replica {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready[b.turn.Add(1)%uint64(len(b.ready))]
}

// RoundTrip chooses the replica.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	for tries := 0; ; tries++ {
		to, err := url.Parse(b.next().HTTP)
		if err != nil {
			return nil, err
		}
		sent := r.Clone(r.Context())
		sent.URL.Scheme, sent.URL.Host = to.Scheme, to.Host
		response, err := b.inner.RoundTrip(sent)
		var op *net.OpError
		if err == nil || tries == 3 || !errors.As(err, &op) || op.Op != "dial" {
			return response, err
		}
		b.retried.Add(1)
	}
}

// watch looks which replicas are ready, as an orchestrator does, until ctx ends. all is asked for each time.
func (b *balancer) watch(ctx context.Context, all func() []*replica) {
	for pause(ctx, 100*time.Millisecond) {
		var ready []*replica
		for _, r := range all() {
			if a, err := ask(r.Admin+"/readyz", nil); err == nil && a.status == http.StatusOK {
				ready = append(ready, r)
			}
		}
		if len(ready) > 0 {
			b.set(ready...)
		}
	}
}

// TestRollingRestart: two replicas behind a balancer are stopped and started one after the other while readers ask
// and events arrive. No reader notices: in a full run, of 100 000 answers.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	js := c.connect()
	c.formed(js)
	dirs := []string{t.TempDir(), t.TempDir()}
	var mu sync.Mutex
	var replicas []*replica
	for _, dir := range dirs {
		replicas = append(replicas, serve(t, dir, c.urls(), "--snapshot-every=0"))
	}
	w := writing(t, js)
	until(t, "there are entries", func() bool { n, _ := w.done(); return n >= len(w.entries) })
	inner := &http.Transport{MaxIdleConnsPerHost: 20}
	t.Cleanup(inner.CloseIdleConnections)
	b := &balancer{inner: inner}
	b.set(replicas...)
	front := httptest.NewServer(&httputil.ReverseProxy{Transport: b, Rewrite: func(r *httputil.ProxyRequest) { r.SetXForwarded() },
		ErrorLog: log.New(t.Output(), "balancer: ", 0)})
	t.Cleanup(front.Close)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		b.watch(ctx, func() []*replica { mu.Lock(); defer mu.Unlock(); return append([]*replica(nil), replicas...) })
	})
	t.Cleanup(func() { cancel(); watching.Wait() })
	var readers []*reader
	for range 4 {
		readers = append(readers, reading(t, front.URL, false))
	}
	for round := 0; round < times(3, 20) || answered(readers) < times(1000, 100_000); round++ {
		for i, dir := range dirs {
			if status := replicas[i].stop(); status != 0 {
				t.Errorf("exit status %d: %s", status, replicas[i].said())
			}
			again := serve(t, dir, c.urls(), "--snapshot-every=0")
			mu.Lock()
			replicas[i] = again
			mu.Unlock()
			before := b.turn.Load()
			until(t, "the balancer uses it", func() bool { return b.uses(again) && b.turn.Load() > before+20 })
		}
		t.Logf("round %d: %d answers so far, %d requests sent to another replica", round, answered(readers), b.retried.Load())
	}
	w.end()
	for _, r := range readers {
		r.flawless(t)
	}
	_, last := w.done()
	agree(t, c, max(last, info(js, "REGISTRY").State.LastSeq), replicas...)
}

// answered is how many reads have been, by all readers.
func answered(readers []*reader) (n int) {
	for _, r := range readers {
		n += int(r.answered.Load())
	}
	return n
}

// uses says that a replica is in its turn.
func (b *balancer) uses(one *replica) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.ready {
		if r == one {
			return true
		}
	}
	return false
}
