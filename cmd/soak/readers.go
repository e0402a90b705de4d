//go:build unix

package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"example.org/registry/events"
)

// readers ask the living replica, two at a time, and expect every answer.
type readers struct {
	backend   *backend
	base      string
	questions []string
	report    *report
	clients   [readerCount]*http.Client
	answered  atomic.Int64
}

// readerCount is how many ask at once.
const readerCount = 2

// questions are a fixed set, so that what the server remembers of them is bounded, and soon full.
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

func newReaders(b *backend, base string, r *report) *readers {
	out := &readers{backend: b, base: base, questions: questions(b.content.entries), report: r}
	for i := range out.clients {
		out.clients[i] = newClient(true)
	}
	return out
}

// hangUp ends the connections of readers that are held up at a quiet point.
func (r *readers) hangUp() {
	for _, c := range r.clients {
		c.CloseIdleConnections()
	}
}

// run asks so many questions a second until ctx ends.
func (r *readers) run(ctx context.Context, n int, rate int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 100+uint64(n)))
	client := r.clients[n]
	defer client.CloseIdleConnections()
	seen := uint64(0)
	for ctx.Err() == nil {
		began := time.Now()
		seen = r.one(ctx, client, rng, seen)
		pause(ctx, time.Second*readerCount/time.Duration(rate)-time.Since(began))
	}
}

// one asks one question and returns the highest sequence seen.
func (r *readers) one(ctx context.Context, client *http.Client, rng *rand.Rand, seen uint64) uint64 {
	r.backend.calm.RLock()
	defer r.backend.calm.RUnlock()
	question := r.questions[rng.IntN(len(r.questions))]
	header := http.Header{"Accept-Encoding": {[]string{"identity", "gzip", "zstd"}[rng.IntN(3)]}}
	own := rng.IntN(10) == 0 && listOrCheck(question)
	if own {
		header.Set("Registry-Min-Sequence", strconv.FormatUint(r.backend.last.Load(), 10))
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

// judge holds an answer against the contract. own says that it was to be as new as what was published.
func (r *readers) judge(question string, own bool, seen uint64, a answer, err error) uint64 {
	sequence, _ := strconv.ParseUint(a.header.Get("Registry-Sequence"), 10, 64) // 0 is wrong enough
	switch {
	case err != nil:
		r.report.fail("a reader: %v", err)
	case own && a.status == http.StatusServiceUnavailable:
		r.report.count("own writes not there in time") // that is what the contract says to them
	case a.status != http.StatusOK:
		r.report.fail("a reader: %s: %d %.200s", question, a.status, a.body)
	case listOrCheck(question) && sequence < seen:
		r.report.fail("a reader: %s: at sequence %d after %d", question, sequence, seen)
	default:
		r.answered.Add(1)
	}
	return max(seen, sequence)
}

// fill asks every question in every coding, twice: from then on all that can be remembered of them is.
func (r *readers) fill(ctx context.Context) error {
	client := newClient(true)
	defer client.CloseIdleConnections()
	for range 2 {
		for _, question := range r.questions {
			for _, coding := range []string{"identity", "gzip", "zstd"} {
				a, err := askBy(ctx, client, r.base+question, http.Header{"Accept-Encoding": {coding}})
				if ctx.Err() != nil {
					return ctx.Err()
				}
				r.judge(question, false, r.backend.last.Load(), a, err) // it has everything
			}
		}
	}
	return nil
}
