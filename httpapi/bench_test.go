package httpapi

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// many is n entries of a usual size, all of them scammers.
func many(n int) []events.Data {
	out := make([]events.Data, n)
	start := time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range out {
		id := fmt.Sprintf("e%07d", i)
		out[i] = events.Entry{
			List: events.Scammers, EntryID: id, ChatID: fmt.Sprintf("9%017d", i), Name: fmt.Sprintf("Oszust %d żółw", i*7919%n),
			Reason:   strings.Repeat("Wziął **zaliczkę** za konto i zniknął, zob. https://example.org/dowody. ", 3),
			Verified: i%3 > 0, ReportID: "R-" + id, ReportedAt: start.Add(time.Duration(i) * time.Minute),
		}
	}
	return out
}

// busyAPI is the API over n entries, without a listener.
func busyAPI(b testing.TB, n int) *Public {
	b.Helper()
	m, r := readmodel.New(), readmodel.NewRenderer()
	m.BeginBulk()
	for i, d := range many(n) {
		m.Apply([]readmodel.Record{r.Render(uint64(i+1), d)}, uint64(i+1))
	}
	m.EndBulk()
	state := State{Ready: true, AsOf: asOf()}
	p, err := NewPublic(Config{Health: &Health{Reader: m, State: func() State { return state }}})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// sink is a ResponseWriter that costs nothing itself.
type sink struct {
	header http.Header
	status int
	n      int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { s.n += len(p); return len(p), nil }

// handle measures the handler alone: its time and allocations (at most 20 for a list).
func handle(b *testing.B, p http.Handler, target string, want int, headers ...string) {
	b.Helper()
	req := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	s := &sink{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(s.header)
		p.ServeHTTP(s, req)
	}
	if s.status != want {
		b.Fatalf("%s: status %d", target, s.status)
	}
}

// A list answer allocates at most 20 times in its handler, whatever the page size.
func TestListAllocations(t *testing.T) {
	p := busyAPI(t, 200)
	for _, target := range []string{"/api/scammers", "/api/scammers?limit=1", "/api/scammers?sort=za&status=risk&proofs=all&skip=3&limit=60", "/api/check?id=1"} {
		req := httptest.NewRequest(http.MethodGet, target, nil)
		s := &sink{header: http.Header{}}
		n := testing.AllocsPerRun(100, func() {
			clear(s.header)
			p.ServeHTTP(s, req)
		})
		if n > 20 || s.n == 0 {
			t.Errorf("%s: %v allocations, %d bytes", target, n, s.n)
		}
	}
}

func BenchmarkList(b *testing.B) {
	p := busyAPI(b, 30000)
	for name, target := range map[string]string{
		"first":      "/api/scammers",
		"limit=1":    "/api/scammers?limit=1",
		"limit=60":   "/api/scammers?limit=60",
		"skip=20000": "/api/scammers?sort=az&status=all&proofs=all&skip=20000",
		"id":         "/api/scammers?id=900000000000000007",
		"search=all": "/api/scammers?search=zaliczk%C4%99",
		"search=few": "/api/scammers?search=oszust+77",
	} {
		b.Run(name, func(b *testing.B) { handle(b, p, target, http.StatusOK) })
	}
	b.Run("gzip", func(b *testing.B) { handle(b, p, "/api/scammers", http.StatusOK, "Accept-Encoding", "gzip") })
	b.Run("zstd", func(b *testing.B) { handle(b, p, "/api/scammers", http.StatusOK, "Accept-Encoding", "gzip, zstd") })
	b.Run("304", func(b *testing.B) {
		tag := p.admitter.health.Reader.View().ListTag(events.Scammers, readmodel.Newest)
		handle(b, p, "/api/scammers", http.StatusNotModified, "If-None-Match", `"`+tag+`"`)
	})
}

func BenchmarkCheck(b *testing.B) {
	p := busyAPI(b, 30000)
	b.Run("id", func(b *testing.B) { handle(b, p, "/api/check?id=900000000000000007", http.StatusOK) })
	b.Run("name", func(b *testing.B) { handle(b, p, "/api/check?search=oszust+77", http.StatusOK) })
}

// BenchmarkRatio compares answers over real HTTP with those of a bare gin handler that sends the
// same headers and body from a constant, the limit for any service that leaves its answers to gin, and with
// answers over net/http's own connections. Compare the times of a target; they run in the same process, one after the other.
func BenchmarkRatio(b *testing.B) {
	p := busyAPI(b, 30000)
	for name, target := range map[string]string{"list": "/api/scammers", "check": "/api/check?id=900000000000000007"} {
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, target, nil))
		bare := constant(rec.Header(), rec.Body.Bytes())
		b.Run(name+"/limit", func(b *testing.B) { overHTTP(b, listen(b, NewServer(bare, nil)), target) })
		b.Run(name+"/registry", func(b *testing.B) { overHTTP(b, listen(b, NewServer(p, nil)), target) })
		b.Run(name+"/plain", func(b *testing.B) { overHTTP(b, listenOver(b, NewServer(p, nil), nil), target) })
	}
}

func constant(header http.Header, body []byte) http.Handler {
	e := gin.New()
	e.NoRoute(func(c *gin.Context) {
		maps.Copy(c.Writer.Header(), header)
		c.Data(http.StatusOK, "application/json; charset=utf-8", body)
	})
	return e
}

func overHTTP(b *testing.B, addr, target string) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+addr+target, nil)
			if err != nil {
				b.Error(err)
				return
			}
			resp, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}
