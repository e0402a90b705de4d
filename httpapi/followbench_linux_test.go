package httpapi

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"example.org/registry/events/eventstest"
	"github.com/stretchr/testify/require"
)

// crowd is followers of the feed that take no CPU time: sockets for which the system notes
// when bytes came in, and which are read later.
type crowd []int

// gather has n readers follow the feed until the benchmark ends.
func gather(b *testing.B, p *Public, addr string, n int) crowd {
	b.Helper()
	to := netip.MustParseAddrPort(addr)
	since := p.gate.health.Reader.View().Sequence()
	request := fmt.Appendf(nil, "GET %s/events?since=%d HTTP/1.1\r\nHost: registry.example\r\n\r\n", changesOf, since)
	c := make(crowd, n)
	for i := range c {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		require.NoError(b, err)
		b.Cleanup(func() { _ = syscall.Close(fd) })
		require.NoError(b, syscall.Connect(fd, &syscall.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}))
		require.NoError(b, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1))
		_, err = syscall.Write(fd, request)
		require.NoError(b, err)
		c[i] = fd
	}
	eventstest.Until(b, func() bool { return p.followers.following.count() == n })
	c.arrived(b) // ticks
	return c
}

// arrived reads what has come and returns when the last of it did, for each follower.
func (c crowd) arrived(b *testing.B) []time.Time {
	b.Helper()
	at, buf, control := make([]time.Time, len(c)), make([]byte, 64<<10), make([]byte, 64)
	for i, fd := range c {
		n, size, _, _, err := syscall.Recvmsg(fd, buf, control, 0)
		if err != nil || n == 0 {
			b.Fatal(n, err)
		}
		messages, err := syscall.ParseSocketControlMessage(control[:size])
		require.NoError(b, err)
		if len(messages) == 1 { // the system begins to note times a little after the first was asked for
			at[i] = time.Unix((*syscall.Timespec)(unsafe.Pointer(&messages[0].Data[0])).Unix())
		}
	}
	return at
}

// cpuTime returns the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkFollowers measures the way from an event that is applied to the sockets of a thousand
// followers, the CPU time that takes, and the server's memory for them. Then the lists'
// throughput beside them, on all CPUs and with the lists' client on the same, while changes
// come at a steady rate. What the followers themselves cost is not in any of it.
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
		var took []time.Duration
		busy := time.Duration(0)
		for b.Loop() {
			began, used := time.Now(), cpuTime(b)
			publish()
			time.Sleep(50 * time.Millisecond)
			busy += cpuTime(b) - used
			for _, at := range c.arrived(b) {
				took = append(took, at.Sub(began))
			}
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2])/1e6, "ms-median")
		b.ReportMetric(float64(took[len(took)*99/100])/1e6, "ms-p99")
		b.ReportMetric(float64(busy)/1e3/float64(len(took)), "µs-cpu/follower")
		b.ReportMetric(after-before, "MB")
	})
	for _, rate := range []int{1, 10} {
		for _, followers := range []int{0, n} {
			b.Run(fmt.Sprintf("lists-%d-changes-a-second-beside-%d", rate, followers), func(b *testing.B) {
				p, addr, publish := feedAPI(b, 100_000)
				gather(b, p, addr, followers)
				done, stop := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					tick := time.NewTicker(time.Second / time.Duration(rate))
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
				used := cpuTime(b)
				overHTTP(b, addr, "/api/scammers")
				b.StopTimer()
				b.ReportMetric(float64(cpuTime(b)-used)/1e3/float64(b.N), "µs-cpu/op")
				close(stop)
				<-done
			})
		}
	}
}
