package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/internal/apitest"
)

// long adds entries whose reasons are as long as an event allows.
func long(f *fixture, n int) (ids []string) {
	var data []events.Data
	for i := range n {
		id := fmt.Sprint(880000000000000000 + i)
		ids = append(ids, id)
		data = append(data, events.Entry{Revision: 1, List: events.Scammers, EntryID: fmt.Sprint("long", i), ChatID: id, Name: fmt.Sprint("Long ", i),
			Reason: strings.Repeat("<b> & ", 3300), ReportID: "r", ReportedAt: apitest.AsOf()})
	}
	f.apply(data...)
	return ids
}

// Readers who ask for the largest answers and take nothing hold no more memory than the budget
// has; what they are refused is 503 at once; and small answers are given beside them.
func TestSilentReadersHoldABudget(t *testing.T) {
	const budget = 32 << 20
	f := serve(t, func(c *Config) { c.AnswerMemory, c.Site = budget, true })
	ids := long(f, 100)
	targets := []string{
		"/api/scammers?limit=60", "/api/check/batch?ids=" + strings.Join(ids, ","), "/scammers?limit=60", "/api/check?search=Long",
		"/api/search?limit=60&q=Long", "/szukaj?limit=60&q=Long", changesOf + "?limit=1000&since=0", "/api/scammers?limit=60&sort=oldest",
	}
	var most atomic.Int64
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Microsecond):
				most.Store(max(most.Load(), f.public.answers.Used()))
			}
		}
	}()
	ask := func(i int) {
		c, err := net.Dial("tcp", f.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		encoding := []string{"identity", "gzip"}[i%2]
		_, err = fmt.Fprintf(c, "GET %s&x=%d HTTP/1.1\r\nHost: x\r\nAccept-Encoding: %s\r\n\r\n", targets[i%len(targets)], i, encoding)
		require.NoError(t, err)
	}
	for i := range 160 {
		ask(i)
	}
	var a *response
	for i := 160; i < 400; i++ { // what could be sent is sent, and the rest fills the budget
		ask(i)
		if a = f.fetch(t, http.MethodGet, fmt.Sprint(targets[1], "&x=another", i)); a.status != http.StatusOK {
			break
		}
	}
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "1" || a.header.Get(errorHeader) != "overloaded" {
		t.Error(a.status, a.header)
	}
	for range 20 {
		require.Equal(t, http.StatusOK, f.fetch(t, http.MethodGet, "/api/check?id="+ids[7]).status)
		require.Equal(t, http.StatusOK, f.fetch(t, http.MethodGet, "/api/check?id=1").status)
		require.Equal(t, http.StatusOK, f.fetch(t, http.MethodGet, "/").status)
	}
	close(stop)
	<-watched
	if n := most.Load(); n > budget || n < budget/4 {
		t.Errorf("%d bytes of answers at once, of at most %d", n, budget)
	}
}

// Every byte is given back, whatever became of the answer.
func TestBudgetIsGivenBack(t *testing.T) {
	f := serve(t, func(c *Config) { c.AnswerMemory, c.Site = 64<<20, true })
	ids := long(f, 30)
	for _, target := range []string{
		"/api/scammers?limit=60", "/api/scammers?limit=60", "/api/scammers?limit=60", "/api/check/batch?ids=" + strings.Join(ids, ","), "/scammers?limit=60",
		"/api/search?q=Long", "/szukaj?q=Long", "/szukaj", "/api/check?id=1", "/api/nothing", "/openapi.yaml", "/", changesOf + "?since=0", "/api/chat/avatar/1",
	} {
		for _, encoding := range []string{"identity", "gzip"} {
			a := f.fetch(t, http.MethodGet, target, "Accept-Encoding", encoding)
			f.fetch(t, http.MethodGet, target, "Accept-Encoding", encoding, "If-None-Match", a.header.Get("Etag"))
		}
	}
	for range 20 { // readers who leave in the middle
		c, err := net.Dial("tcp", f.addr)
		require.NoError(t, err)
		_, err = io.WriteString(c, "GET /api/scammers?limit=60 HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		_, _ = c.Read(make([]byte, 100))
		_ = c.Close()
	}
	eventstest.Until(t, func() bool { return f.public.answers.Used() == 0 })
}

// A body that readers share counts once.
func TestSharedBodyCountsOnce(t *testing.T) {
	f := serve(t, func(c *Config) { c.AnswerMemory = 64 << 20 })
	long(f, 60)
	size := 0
	for range 3 { // remembered at the second time
		size = len(f.fetch(t, http.MethodGet, "/api/scammers?limit=60").body)
	}
	for range 40 {
		c, err := net.Dial("tcp", f.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		_, err = io.WriteString(c, "GET /api/scammers?limit=60 HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
	}
	eventstest.Until(t, func() bool { return f.public.metrics.inFlight() == 40 })
	if used := f.public.answers.Used(); used < int64(size) || used > int64(size)*3/2 {
		t.Errorf("40 readers of one body of %d bytes count %d", size, used)
	}
	if n := f.public.answers.Refused(); n > 0 {
		t.Errorf("%d refused", n)
	}
}
