//go:build unix && !race && measure

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

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events/pause"
)

// balancer sends each request to the next replica that was ready when it last looked. Like every
// balancer it tries another one when nobody listens. If a connection breaks after that, readers see
// it.
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

// watch asks which replicas are ready, as an orchestrator does, until ctx ends.
func (b *balancer) watch(ctx context.Context, all func() []*replica) {
	for pause.For(ctx, 100*time.Millisecond) {
		var ready []*replica
		for _, r := range all() {
			if a, err := registrytest.Ask(ctx, r.Admin+"/readyz", nil); err == nil && a.Status == http.StatusOK {
				ready = append(ready, r)
			}
		}
		if len(ready) > 0 {
			b.set(ready...)
		}
	}
}

// TestRollingRestart: two replicas behind a balancer are restarted one after the other while
// readers ask and events arrive. No reader notices, with -soak during 100,000 answers.
func TestRollingRestart(t *testing.T) {
	long(t)
	t.Parallel()
	c, js := startNodes(t)
	dirs := []string{t.TempDir(), t.TempDir()}
	var mu sync.Mutex
	var replicas []*replica
	for _, dir := range dirs {
		replicas = append(replicas, serve(t, dir, c.urls(), "--snapshot-every=0"))
	}
	_, end := publishing(t, js)
	filled(t, js, replicas...)
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
	var all []*registrytest.Readers
	var hangUp []func()
	for range 4 {
		r, end := registrytest.Reading(t, front.URL, 1, false)
		all, hangUp = append(all, r), append(hangUp, end)
	}
	for round := 0; round < times(3, 20) || answered(all) < times(1000, 100_000); round++ {
		for i, dir := range dirs {
			if status := replicas[i].stop(); status != 0 {
				t.Errorf("exit status %d: %s", status, replicas[i].Log())
			}
			again := serve(t, dir, c.urls(), "--snapshot-every=0")
			mu.Lock()
			replicas[i] = again
			mu.Unlock()
			before := b.turn.Load()
			until(t, "the balancer uses it", func() bool { return b.uses(again) && b.turn.Load() > before+20 })
		}
		t.Logf("round %d: %d answers so far, %d requests sent to another replica", round, answered(all), b.retried.Load())
	}
	end()
	for _, end := range hangUp {
		end()
	}
	agree(t, c, lastOf(t, js), replicas...)
}

// answered returns the reads of all readers.
func answered(all []*registrytest.Readers) (n int) {
	for _, r := range all {
		n += int(r.Answered.Load())
	}
	return n
}

// uses reports whether a replica gets requests.
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
