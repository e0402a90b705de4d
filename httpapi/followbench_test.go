package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
		m.Apply([]readmodel.Record{r.Render(seq, entry)}, seq)
		return seq
	}
}

// BenchmarkFeedRatio is BenchmarkRatio for polls that find nothing, at 100 000 entries.
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
// want to be 17 000 at least: 60 s.
func BenchmarkFirstSync(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			_, addr, _ := feedAPI(b, n)
			bytesRead := int64(0)
			for b.Loop() {
				for since := 0; since < n; since += 1000 {
					resp, err := http.Get(fmt.Sprintf("http://%s%s?since=%d&limit=1000", addr, changesOf, since))
					if err != nil {
						b.Fatal(err)
					}
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

// crowd is followers of the feed. They only read.
type crowd struct {
	want  atomic.Uint64
	began atomic.Int64 // when want was published, since the start
	start time.Time
	got   sync.WaitGroup

	mu   sync.Mutex
	took []time.Duration
}

// gather has n readers follow the feed until the benchmark ends.
func gather(b *testing.B, p *Public, addr string, n int) *crowd {
	b.Helper()
	c := &crowd{start: time.Now()}
	since := p.gate.health.Reader.View().Sequence()
	for range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		if _, err := fmt.Fprintf(conn, "GET %s/events?since=%d HTTP/1.1\r\nHost: registry.example\r\n\r\n", changesOf, since); err != nil {
			b.Fatal(err)
		}
		go c.read(conn)
	}
	eventually(b, func() bool { return p.followers.following.Load() == int64(n) })
	return c
}

func (c *crowd) read(conn net.Conn) {
	lines := bufio.NewReaderSize(conn, 4<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
		id, ok := bytes.CutPrefix(line, []byte("id: "))
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(string(bytes.TrimSpace(id)), 10, 64); err == nil && n == c.want.Load() {
			took := time.Since(c.start) - time.Duration(c.began.Load())
			c.mu.Lock()
			c.took = append(c.took, took)
			c.mu.Unlock()
			c.got.Done()
		}
	}
}

// BenchmarkFollowers measures the way from an event that is applied to a thousand followers, and
// what they take beside: memory, of which about half is their own side's, and the lists'
// throughput while ten events a second come.
func BenchmarkFollowers(b *testing.B) {
	const n = 1000
	memory := func() float64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return float64(s.HeapAlloc+s.StackInuse) / (1 << 20)
	}
	b.Run("latency", func(b *testing.B) {
		p, addr, publish := feedAPI(b, 100_000)
		before := memory()
		c := gather(b, p, addr, n)
		after := memory()
		next := p.gate.health.Reader.View().Sequence()
		for b.Loop() {
			next++
			c.got.Add(n)
			c.want.Store(next)
			c.began.Store(int64(time.Since(c.start)))
			publish()
			c.got.Wait()
			b.StopTimer()
			time.Sleep(50 * time.Millisecond)
			b.StartTimer()
		}
		slices.Sort(c.took)
		b.ReportMetric(float64(c.took[len(c.took)/2])/1e6, "ms-median")
		b.ReportMetric(float64(c.took[len(c.took)*99/100])/1e6, "ms-p99")
		b.ReportMetric(after-before, "MB-both-sides")
	})
	for _, followers := range []int{0, n} {
		b.Run(fmt.Sprintf("lists-beside-%d", followers), func(b *testing.B) {
			p, addr, publish := feedAPI(b, 100_000)
			gather(b, p, addr, followers)
			done, stop := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
						publish()
					case <-stop:
						return
					}
				}
			}()
			b.ResetTimer()
			overHTTP(b, addr, "/api/scammers")
			b.StopTimer()
			close(stop)
			<-done
		})
	}
}
