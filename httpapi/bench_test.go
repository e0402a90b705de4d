package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/readmodel"
)

// many is n entries of a usual size, all of them scammers.
func many(n int) []events.Data {
	out := make([]events.Data, n)
	start := time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range out {
		id := fmt.Sprintf("e%07d", i)
		out[i] = events.Entry{
			Revision: 1,
			List:     events.Scammers, EntryID: id, ChatID: fmt.Sprintf("9%017d", i), Name: fmt.Sprintf("Oszust %d żółw", i*7919%n),
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
	m.NameFeed(apitest.Epoch)
	m.BeginBulk()
	for i, d := range many(n) {
		m.Apply([]readmodel.Record{r.Render(uint64(i+1), events.Revised(d, int64(i+1)))}, uint64(i+1))
	}
	m.EndBulk()
	state := Readiness{Ready: true, AsOf: asOf()}
	p, err := NewPublic(Config{Health: &Health{Reader: m, Readiness: func() Readiness { return state }}})
	require.NoError(b, err)
	b.Cleanup(p.Close)
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

// handle measures the handler alone: its time and allocations (at most 40 for a list).
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

// A list answer allocates at most 40 times in its handler, whatever the page size.
func TestListAllocations(t *testing.T) {
	p := busyAPI(t, 200)
	for _, target := range []string{"/api/scammers", "/api/scammers?limit=1", "/api/scammers?sort=za&status=risk&proofs=all&skip=3&limit=60", "/api/check?id=1"} {
		req := httptest.NewRequest(http.MethodGet, target, nil)
		s := &sink{header: http.Header{}}
		n := testing.AllocsPerRun(100, func() {
			clear(s.header)
			p.ServeHTTP(s, req)
		})
		if n > 40 || s.n == 0 {
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
	b.Run("304", func(b *testing.B) {
		tag := p.health.Reader.View().ListTag(&readmodel.ListQuery{List: events.Scammers})
		handle(b, p, "/api/scammers", http.StatusNotModified, "If-None-Match", `"`+tag+`"`)
	})
}

func BenchmarkCheck(b *testing.B) {
	p := busyAPI(b, 30000)
	b.Run("id", func(b *testing.B) { handle(b, p, "/api/check?id=900000000000000007", http.StatusOK) })
	b.Run("name", func(b *testing.B) { handle(b, p, "/api/check?search=oszust+77", http.StatusOK) })
}
