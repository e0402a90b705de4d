//go:build unix && !race

package cluster

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/pause"
)

// readers ask one address over and over, and report every answer that breaks the contract.
type readers struct {
	base      string
	questions []string // paths
	report    *report
	turn      sync.Locker   // held for each request
	last      func() uint64 // if not nil, some requests want an answer at least as new as this sequence
	replica   bool          // one replica answers, so no answer is older than the one before
	clients   []*http.Client
	answered  atomic.Int64
}

// paths are a few lists and checks.
var paths = []string{"/api/scammers?limit=5", "/api/servers?sort=az&limit=5", "/api/check?search=kowalski", "/api/legit", "/api/scammers?search=state&limit=2"}

// reading starts one reader, with about 200 requests a second. end stops it and fails the test if it
// got no answers. replica says that one replica answers, and not a balancer.
func reading(t *testing.T, base string, replica bool) (r *readers, end func()) {
	t.Helper()
	r = &readers{base: base, questions: paths, report: newReport(t), turn: new(sync.Mutex), replica: replica, clients: []*http.Client{newClient(false)}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx, 0, 200, 6) })
	end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if r.answered.Load() == 0 {
			t.Error("a reader got no answers")
		}
		t.Logf("%d reads answered", r.answered.Load())
	})
	t.Cleanup(end)
	return r, end
}

// questions returns a fixed set, so that what a server caches of the answers is bounded and soon
// complete.
func questions(entries []events.Entry) []string {
	var all []string
	for _, list := range events.Lists() {
		for _, more := range []string{"", "?sort=popular&limit=60", "?sort=popular_asc&skip=20", "?sort=az&limit=5", "?sort=za", "?sort=oldest&skip=30",
			"?status=verified&proofs=with", "?proofs=private&sort=az", "?search=Kowalski", "?search=przelew&limit=10", "?search=za", "?search=nobody+at+all"} {
			all = append(all, "/api/"+string(list)+more)
		}
		all = append(all, "/"+string(list), "/"+string(list)+"?search=paypal")
	}
	for i := range min(len(entries), 60) {
		e := entries[i*len(entries)/60]
		all = append(all, "/api/check?id="+e.ChatID, "/api/check?search="+url.QueryEscape(e.Name), "/api/"+string(e.List)+"?search="+url.QueryEscape(e.Name))
		if i%6 == 0 {
			all = append(all, "/?search="+url.QueryEscape(e.Name), "/api/chat/avatar/"+e.ChatID)
		}
	}
	return append(all, "/", "/api", "/status", "/api/status", "/openapi.yaml", "/asyncapi.yaml", "/robots.txt", "/api/check?search=Łukasz")
}

// codings are what readers accept.
func codings() []string { return []string{"identity", "gzip", "zstd"} }

// hangUp closes idle connections.
func (r *readers) hangUp() {
	for _, c := range r.clients {
		c.CloseIdleConnections()
	}
}

// run is reader n: it asks rate questions a second until ctx ends.
func (r *readers) run(ctx context.Context, n int, rate int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 100+uint64(n)))
	defer r.clients[n].CloseIdleConnections()
	seen := uint64(0)
	for ctx.Err() == nil {
		began := time.Now()
		seen = r.one(ctx, r.clients[n], rng, seen)
		pause.For(ctx, time.Second/time.Duration(rate)-time.Since(began))
	}
}

// one asks one question and returns the highest sequence seen.
func (r *readers) one(ctx context.Context, client *http.Client, rng *rand.Rand, seen uint64) uint64 {
	r.turn.Lock()
	defer r.turn.Unlock()
	question := r.questions[rng.IntN(len(r.questions))]
	header := http.Header{"Accept-Encoding": {codings()[rng.IntN(3)]}}
	own := r.last != nil && rng.IntN(10) == 0 && listOrCheck(question)
	if own {
		header.Set("Registry-Min-Sequence", strconv.FormatUint(r.last(), 10))
	}
	a, err := askBy(ctx, client, r.base+question, header)
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
func (r *readers) judge(question string, own bool, seen uint64, a answer, err error) uint64 {
	sequence, _ := strconv.ParseUint(a.header.Get("Registry-Sequence"), 10, 64) // 0 is wrong enough
	switch {
	case err != nil:
		r.report.fail("a reader: %v", err)
	case own && a.status == http.StatusServiceUnavailable:
		r.report.count("own writes not there in time") // as the contract allows
	case a.status != http.StatusOK:
		r.report.fail("a reader: %s: %d %.200s", question, a.status, a.body)
	case listOrCheck(question) && (sequence == 0 || r.replica && sequence < seen):
		r.report.fail("a reader: %s: at sequence %d after %d", question, sequence, seen)
	default:
		r.answered.Add(1)
	}
	return max(seen, sequence)
}

// fill asks every question in every coding, twice: from then on the server has cached all that it
// can.
func (r *readers) fill(ctx context.Context) error {
	client := newClient(true)
	defer client.CloseIdleConnections()
	for range 2 {
		for _, question := range r.questions {
			for _, coding := range codings() {
				a, err := askBy(ctx, client, r.base+question, http.Header{"Accept-Encoding": {coding}})
				if ctx.Err() != nil {
					return ctx.Err()
				}
				r.judge(question, false, r.last(), a, err) // it has everything
			}
		}
	}
	return nil
}
