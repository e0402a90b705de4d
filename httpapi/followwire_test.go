package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

// live waits until watch sends n streams what comes.
func (f *fixture) live(t testing.TB, n int) {
	t.Helper()
	eventually(t, func() bool {
		f.public.followers.liveMu.Lock()
		defer f.public.followers.liveMu.Unlock()
		return len(f.public.followers.live) == n
	})
}

// rawFollow asks addr for the events after since, and reads nothing yet.
func rawFollow(t testing.TB, addr string, since uint64) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := fmt.Fprintf(conn, "GET %s/events?since=%d HTTP/1.1\r\nHost: x\r\n\r\n", changesOf, since); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// readFollow reads what rawFollow asked for.
func readFollow(t testing.TB, conn net.Conn) *follower {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &follower{t, resp, bufio.NewScanner(resp.Body), nil}
	s.body.Buffer(nil, 1<<20)
	return s
}

// fill applies at once what is a page of the feed, and more than a connection takes.
func (f *fixture) fill(t testing.TB) {
	t.Helper()
	since := f.model.View().Sequence()
	all := make([]events.Data, 30)
	for n := range all {
		all[n] = fat(n)
	}
	f.apply(all...)
	if p := f.model.View().Feed(since, readmodel.MaxFeedPage, readmodel.MaxFeedPage); !p.UpToDate {
		t.Fatal("more than a page")
	}
}

// stopWatch stops watch, so that the test tells the news.
func (f *fixture) stopWatch() *followers {
	fs := f.public.followers
	fs.stop()
	fs.running.Wait()
	return fs
}

// The events of a change are made once for all.
func TestEventsAreMadeOnce(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = time.Hour
	var all [3]*follower
	for i := range all {
		all[i] = f.follow(t, "?since="+apitest.Sequence(0))
		all[i].want(at(0), "tick", "")
	}
	f.live(t, len(all))
	before := testutil.ToFloat64(f.public.followers.pages)
	f.apply(events.Delisting{List: events.Scammers, EntryID: "s1"})
	for _, s := range all {
		s.want(at(1), "remove", "")
	}
	if made := testutil.ToFloat64(f.public.followers.pages) - before; made != 1 {
		t.Errorf("%v pages for one change", made)
	}
}

// A change that a tick was ahead of is not sent again as news.
func TestTickAheadOfNews(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = time.Hour
	conn := rawFollow(t, f.addr, at(0))
	s := readFollow(t, conn)
	s.want(at(0), "tick", "")
	f.live(t, 1)
	fs, was := f.stopWatch(), f.model.View()
	f.apply(events.Delisting{List: events.Scammers, EntryID: "s1"})
	if err := conn.CloseWrite(); err != nil { // brings a tick
		t.Fatal(err)
	}
	s.want(at(1), "remove", "")
	s.want(at(1), "tick", "")
	f.live(t, 1)
	is := f.model.View()
	fs.tell(was, is)
	f.live(t, 1)
	f.apply(events.Delisting{List: events.Scammers, EntryID: "s2"})
	fs.tell(is, f.model.View())
	s.want(at(2), "remove", "")
}

// A change of another stream is not sent to those who follow this one.
func TestChangeOfAnotherEpoch(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = time.Hour
	s := f.follow(t, "?since="+apitest.Sequence(0))
	s.want(at(0), "tick", "")
	f.live(t, 1)
	fs, was := f.stopWatch(), f.model.View()
	f.apply(events.Delisting{List: events.Scammers, EntryID: "s1"})
	f.model.SetEpoch("other")
	fs.tell(was, f.model.View())
	s.ended()
}

// A panic while events are made for all is logged, and ends neither the process nor a stream.
func TestPanicForFollowers(t *testing.T) {
	var armed atomic.Bool
	f := serve(t, func(cfg *Config) {
		readiness := cfg.Health.Readiness
		cfg.Health.Readiness = func() Readiness {
			if armed.CompareAndSwap(true, false) {
				panic("broken")
			}
			return readiness()
		}
	})
	f.public.followers.times.tick = time.Hour
	s := f.follow(t, "?since="+apitest.Sequence(0))
	s.want(at(0), "tick", "")
	f.live(t, 1)
	armed.Store(true)
	f.apply(events.Delisting{List: events.Scammers, EntryID: "s1"})
	s.want(at(1), "remove", "")
	if log := f.log.String(); !strings.Contains(log, "broken") {
		t.Errorf("logged: %s", log)
	}
}

// followerInAnEvent follows from the start without reading, until it is handed back with a part of
// what fill applies.
func (f *fixture) followerInAnEvent(t testing.TB) net.Conn {
	t.Helper()
	f.public.followers.times.tick = time.Hour
	conn := rawFollow(t, f.addr, at(0))
	f.live(t, 1)
	f.fill(t)
	f.live(t, 0)
	return conn
}

// A stream that ends in the middle of an event is cut, so that no reader takes the half for the
// whole. It counts as a request all the same.
func TestStreamEndsInAnEvent(t *testing.T) {
	f := serve(t)
	conn := f.followerInAnEvent(t)
	f.public.EndFollowing()
	body, err := io.ReadAll(readFollow(t, conn).resp.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(string(body), "0\r\n\r\n") {
		t.Errorf("%v after %q", err, body[max(0, len(body)-60):])
	}
	requests := f.public.metrics.requests.WithLabelValues("/api/changes/:epoch/events", "200")
	eventually(t, func() bool { return testutil.ToFloat64(requests) == 1 })
}

// A reader that was up to date and falls 1 MiB behind is cut off after a whole event.
func TestFollowerFarBehind(t *testing.T) {
	f := serve(t)
	conn := f.followerInAnEvent(t)
	for n := range 100 {
		f.apply(fat(1000 + n))
	}
	eventually(t, func() bool { return f.public.followers.news.Load().view.Load().LastChange() == at(130) })
	body, err := io.ReadAll(readFollow(t, conn).resp.Body)
	if err != nil || !strings.HasSuffix(string(body), "\n\n") || strings.Contains(string(body), "fat1000") {
		t.Errorf("%v after %q", err, body[max(0, len(body)-60):])
	}
	if n := testutil.ToFloat64(f.public.followers.cut); n != 1 {
		t.Errorf("%v followers cut", n)
	}
}

// A server that stops does not wait until readers have what was there before.
func TestStopEndsCatchingUp(t *testing.T) {
	f := serve(t)
	for n := range 100 {
		f.apply(fat(n))
	}
	conn := rawFollow(t, f.addr, at(0))
	eventually(t, func() bool { return f.public.followers.following.count() == 1 })
	f.public.EndFollowing()
	body, err := io.ReadAll(readFollow(t, conn).resp.Body)
	if err == nil && strings.Contains(string(body), fmt.Sprintf("id: %d\n", at(100))) {
		t.Error("everything was sent")
	}
}

// noting is a listener of connections that note how they are written to.
type noting struct {
	net.Listener
	accepted chan *notingConn
}

func (l noting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n := &notingConn{TCPConn: c.(*net.TCPConn)}
	l.accepted <- n
	return n, nil
}

// notingConn notes its writes; TryWrite passes it by.
type notingConn struct {
	*net.TCPConn
	mu       sync.Mutex
	deadline bool // there is one
	anew     bool // it was set after the last write
	writes   []notedWrite
}

type notedWrite struct {
	size           int
	deadline, anew bool
}

func (c *notingConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.deadline, c.anew = !t.IsZero(), !t.IsZero()
	c.mu.Unlock()
	return c.TCPConn.SetWriteDeadline(t)
}

func (c *notingConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.writes = append(c.writes, notedWrite{len(p), c.deadline, c.anew})
	c.anew = false
	c.mu.Unlock()
	return c.TCPConn.Write(p)
}

// take returns the writes since the last call, and whether there is a deadline.
func (c *notingConn) take() (writes []notedWrite, deadline bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	writes, c.writes = c.writes, nil
	return writes, c.deadline
}

// A reader has its time for every 32 KiB, and for the end. While nothing is sent there is no
// deadline, which would keep watch from writing.
func TestDeadlinesOfStreams(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = time.Hour
	accepted := make(chan *notingConn, 1)
	addr := listenOver(t, wire.NewServer(f.public, nil), func(l net.Listener) net.Listener {
		return wire.LimitConnections(noting{l, accepted}, 0)
	})
	t.Cleanup(f.public.EndFollowing)
	conn := rawFollow(t, addr, at(0))
	server := <-accepted
	f.live(t, 1)
	if writes, deadline := server.take(); deadline || len(writes) == 0 {
		t.Errorf("up to date: deadline %v, writes %v", deadline, writes)
	}
	f.fill(t)
	f.live(t, 0)
	s := readFollow(t, conn)
	s.want(at(0), "tick", "")
	for n := range 30 {
		s.want(at(n+1), "set", "")
	}
	f.live(t, 1)
	writes, deadline := server.take()
	for _, w := range writes {
		if w.size > backlogSize || !w.anew {
			t.Errorf("%+v", w)
		}
	}
	if deadline || len(writes) < 2 {
		t.Errorf("up to date again: deadline %v, writes %v", deadline, writes)
	}
	f.public.EndFollowing()
	s.ended()
	if writes, _ := server.take(); len(writes) != 1 || !writes[0].deadline {
		t.Errorf("the end: %+v", writes)
	}
}
