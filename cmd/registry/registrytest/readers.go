//go:build unix

package registrytest

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/registry/events/pause"
)

// Readers ask one server over and over, and fail the test at every answer that breaks the contract.
type Readers struct {
	Answered atomic.Int64

	t      testing.TB
	base   string
	client *http.Client
}

// Paths returns a few lists and checks.
func Paths() []string {
	return []string{"/api/scammers?limit=5", "/api/servers?sort=az&limit=5", "/api/check?search=kowalski", "/api/legit", "/api/scammers?search=state&limit=2"}
}

// StartReaders starts n readers of [Paths], each with about 200 requests a second. end stops them and
// fails the test if they got no answers.
func StartReaders(t testing.TB, base string, n int) (r *Readers, end func()) {
	t.Helper()
	r = &Readers{t: t, base: base, client: newClient(true)}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { r.readUntilDone(ctx, rand.New(rand.NewPCG(uint64(i), 100))) })
	}

	end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		r.client.CloseIdleConnections()
		if r.Answered.Load() == 0 {
			t.Error("readers got no answers")
		}
		t.Logf("%d reads answered", r.Answered.Load())
	})
	t.Cleanup(end)
	return r, end
}

func (r *Readers) readUntilDone(ctx context.Context, rng *rand.Rand) {
	paths := Paths()
	seen := uint64(0)
	for ctx.Err() == nil {
		began := time.Now()
		path := paths[rng.IntN(len(paths))]
		coding := []string{"identity", "gzip"}[rng.IntN(2)]
		answer, err := askBy(ctx, r.client, r.base+path, http.Header{"Accept-Encoding": {coding}})
		if ctx.Err() != nil {
			return
		}
		seen = r.checkAnswer(path, seen, answer, err)

		// A pause keeps the rate at 200 requests a second.
		pause.For(ctx, time.Second/200-time.Since(began))
	}
}

// checkAnswer compares an answer with the contract, and returns the highest sequence seen.
func (r *Readers) checkAnswer(path string, seen uint64, a Answer, err error) uint64 {
	if err != nil {
		r.t.Errorf("a reader: %v", err)
		return seen
	}
	if a.Status != http.StatusOK {
		r.t.Errorf("a reader: %s: %d %.200s", path, a.Status, a.Body)
		return seen
	}

	sequence, _ := strconv.ParseUint(a.Header.Get("Registry-Sequence"), 10, 64) // an unreadable number becomes 0
	if sequence == 0 || sequence < seen {
		r.t.Errorf("a reader: %s: at sequence %d after %d", path, sequence, seen)
	}
	r.Answered.Add(1)
	return max(seen, sequence)
}
