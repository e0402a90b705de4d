package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

// feedAPI is the API over n entries on a listener, and what publishes to it: each call a change.
func feedAPI(b *testing.B, n int) (p *Public, addr string, publish func() uint64) {
	b.Helper()
	var m *readmodel.Model
	p = busyAPI(b, n, func(cfg *Config) {
		cfg.MaxFollowers = 2000
		m = cfg.Health.Reader.(*readmodel.Model)
	})
	addr = listen(b, wire.NewServer(p, nil))
	b.Cleanup(p.Close)
	b.Cleanup(p.EndFollowing)
	r, seq, entry := readmodel.NewRenderer(), m.View().Sequence(), many(1)[0].(events.Entry)
	return p, addr, func() uint64 {
		seq++
		entry.EntryID = fmt.Sprintf("e%07d", seq%uint64(n))
		m.Apply([]readmodel.Record{r.Render(seq, events.Revised(entry, int64(seq)))}, seq)
		return seq
	}
}

// BenchmarkFeedRatio is BenchmarkRatio for polls that find nothing, at 100,000 entries.
func BenchmarkFeedRatio(b *testing.B) {
	p, addr, _ := feedAPI(b, 100_000)
	target := changesOf + "?since=100000"
	rec := httptest.NewRecorder()
	p.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, target, nil))
	if rec.Code != http.StatusOK {
		b.Fatal(rec.Code)
	}
	bare := listen(b, wire.NewServer(constant(rec.Header(), rec.Body.Bytes()), nil))
	b.Run("limit", func(b *testing.B) { overHTTP(b, bare, target) })
	b.Run("registry", func(b *testing.B) { overHTTP(b, addr, target) })
}

// BenchmarkFirstSync reads everything in pages of 1000, over HTTP. entries/s at a million entries
// want to be 17,000 at least: 60 s.
func BenchmarkFirstSync(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			_, addr, _ := feedAPI(b, n)
			bytesRead := int64(0)
			for b.Loop() {
				for since := 0; since < n; since += 1000 {
					resp, err := http.Get(fmt.Sprintf("http://%s%s?since=%d&limit=1000", addr, changesOf, since))
					require.NoError(b, err)
					size, err := io.Copy(io.Discard, resp.Body)
					if resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
						b.Fatal(err, resp.StatusCode)
					}
					bytesRead += size
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "entries/s")
			b.ReportMetric(float64(bytesRead)/1e6/float64(b.N), "MB")
			http.DefaultClient.CloseIdleConnections()
		})
	}
}
