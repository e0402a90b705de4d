//go:build unix

package registrytest

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/registry/events/pause"
)

// Readers ask one address over and over, and report every answer that breaks the contract.
type Readers struct {
	Base      string
	Questions []string // paths
	Fail      func(format string, args ...any)
	Client    *http.Client

	Turn    sync.Locker   // held for each request; may be nil
	Last    func() uint64 // if not nil, some requests want an answer at least as new as this sequence
	Replica bool          // one replica answers, so no answer is older than the one before

	Answered atomic.Int64
}

// Paths returns a few lists and checks.
func Paths() []string {
	return []string{"/api/scammers?limit=5", "/api/servers?sort=az&limit=5", "/api/check?search=kowalski", "/api/legit", "/api/scammers?search=state&limit=2"}
}

// Codings returns the content codings that readers ask for.
func Codings() []string { return []string{"identity", "gzip"} }

// Reading starts n readers of [Paths], each with about 200 requests a second. end stops them and
// fails the test if they got no answers. If replica is true, one replica answers, else a balancer.
func Reading(t testing.TB, base string, n int, replica bool) (r *Readers, end func()) {
	t.Helper()
	r = &Readers{Base: base, Questions: Paths(), Fail: t.Errorf, Replica: replica, Client: NewClient(replica)}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { r.Run(ctx, 200, uint64(i)) })
	}
	end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		r.Client.CloseIdleConnections()
		if r.Answered.Load() == 0 {
			t.Error("readers got no answers")
		}
		t.Logf("%d reads answered", r.Answered.Load())
	})
	t.Cleanup(end)
	return r, end
}

// Run asks rate questions a second until ctx ends.
func (r *Readers) Run(ctx context.Context, rate int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 100))
	seen := uint64(0)
	for ctx.Err() == nil {
		began := time.Now()
		seen = r.one(ctx, rng, seen)
		pause.For(ctx, time.Second/time.Duration(rate)-time.Since(began))
	}
}

// one asks one question and returns the highest sequence seen.
func (r *Readers) one(ctx context.Context, rng *rand.Rand, seen uint64) uint64 {
	if r.Turn != nil {
		r.Turn.Lock()
		defer r.Turn.Unlock()
	}
	question := r.Questions[rng.IntN(len(r.Questions))]
	header := http.Header{"Accept-Encoding": {Codings()[rng.IntN(2)]}}
	own := r.Last != nil && rng.IntN(10) == 0 && listOrCheck(question)
	if own {
		header.Set("Registry-Min-Sequence", strconv.FormatUint(r.Last(), 10))
	}
	a, err := AskBy(ctx, r.Client, r.Base+question, header)
	if ctx.Err() != nil {
		return seen
	}
	return r.judge(question, own, seen, a, err)
}

func listOrCheck(question string) bool {
	for _, prefix := range []string{"/api/scammers", "/api/servers", "/api/legit", "/api/check"} {
		if strings.HasPrefix(question, prefix) {
			return true
		}
	}
	return false
}

// judge compares an answer with the contract. own says that the reader wanted one as new as its own
// event.
func (r *Readers) judge(question string, own bool, seen uint64, a Answer, err error) uint64 {
	sequence, _ := strconv.ParseUint(a.Header.Get("Registry-Sequence"), 10, 64) // 0 is wrong enough
	switch {
	case err != nil:
		r.Fail("a reader: %v", err)
	case own && a.Status == http.StatusServiceUnavailable: // as the contract allows
	case a.Status != http.StatusOK:
		r.Fail("a reader: %s: %d %.200s", question, a.Status, a.Body)
	case listOrCheck(question) && (sequence == 0 || r.Replica && sequence < seen):
		r.Fail("a reader: %s: at sequence %d after %d", question, sequence, seen)
	default:
		r.Answered.Add(1)
	}
	return max(seen, sequence)
}
