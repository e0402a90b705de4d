package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

// rawFollow asks addr for the events after since, and reads nothing yet.
func rawFollow(t testing.TB, addr string, since uint64) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, err = fmt.Fprintf(conn, "GET %s/events?since=%d HTTP/1.1\r\nHost: x\r\n\r\n", changesOf, since)
	require.NoError(t, err)
	return conn.(*net.TCPConn)
}

// readFollow reads what rawFollow asked for.
func readFollow(t testing.TB, conn io.Reader) *follower {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
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

// The events of a change are made once for all.
func TestEventsAreMadeOnce(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = time.Hour
	var all [3]*follower
	for i := range all {
		all[i] = f.follow(t, "?since="+apitest.Sequence(0))
		all[i].want(at(0), "tick", "")
	}
	before := testutil.ToFloat64(f.public.followers.pages)
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	for _, s := range all {
		s.want(at(1), "remove", "")
	}
	if made := testutil.ToFloat64(f.public.followers.pages) - before; made != 1 {
		t.Errorf("%v pages for one change", made)
	}
}

// A change that a tick was ahead of is not sent again as news, and news of another stream is no
// page of this one.
func TestTickAheadOfNews(t *testing.T) {
	f := serve(t)
	fs := f.public.followers
	fs.times.tick = time.Hour
	conn := rawFollow(t, f.addr, at(0))
	s := readFollow(t, conn)
	s.want(at(0), "tick", "")
	fs.stop()
	fs.running.Wait()
	tell := func(was *readmodel.View) { // as watch does
		last := fs.news.Load()
		fs.news.Store(fs.newNews(was, f.model.View()))
		close(last.next)
	}
	was := f.model.View()
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s1"})
	if err := conn.CloseWrite(); err != nil { // brings a tick
		t.Fatal(err)
	}
	s.want(at(1), "remove", "")
	s.want(at(1), "tick", "")
	tell(was)
	was = f.model.View()
	f.apply(events.Delisting{Revision: 1, List: events.Scammers, EntryID: "s2"})
	tell(was)
	s.want(at(2), "remove", "")
	f.model.NameFeed("other", false)
	f.apply(events.Delisting{Revision: 1, List: events.Servers, EntryID: "v1"})
	if n := fs.newNews(was, f.model.View()); n.from <= n.to {
		t.Errorf("a page of another stream after %d to %d", n.from, n.to)
	}
	tell(was)
	s.ended()
}

// followerInAnEvent follows from the start without reading, until what fill applies is being sent.
func (f *fixture) followerInAnEvent(t testing.TB) io.Reader {
	t.Helper()
	f.public.followers.times.tick = time.Hour
	conn := bufio.NewReaderSize(rawFollow(t, f.addr, at(0)), 16)
	if _, err := conn.Peek(1); err != nil { // the head comes with the tick
		t.Fatal(err)
	}
	before := testutil.ToFloat64(f.public.followers.pages)
	f.fill(t)
	eventstest.Until(t, func() bool { return testutil.ToFloat64(f.public.followers.pages) == before+1 })
	return conn
}

// A stream that ends in the middle of an event is cut, so that no reader takes the half for the
// whole. It still counts as a request.
func TestStreamEndsInAnEvent(t *testing.T) {
	f := serve(t)
	conn := f.followerInAnEvent(t)
	f.public.EndFollowing()
	body, err := io.ReadAll(readFollow(t, conn).resp.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(string(body), "0\r\n\r\n") {
		t.Errorf("%v after %q", err, body[max(0, len(body)-60):])
	}
	requests := f.public.metrics.requests.WithLabelValues("/api/changes/:epoch/events", "200", "")
	eventstest.Until(t, func() bool { return testutil.ToFloat64(requests) == 1 })
}

// A reader that was up to date and falls 1 MiB behind is cut off after a whole event.
func TestFollowerFarBehind(t *testing.T) {
	f := serve(t)
	conn := f.followerInAnEvent(t)
	for n := range 100 {
		f.apply(fat(1000 + n))
	}
	eventstest.Until(t, func() bool { return f.public.followers.news.Load().view.Load().LastChange() == at(130) })
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
	eventstest.Until(t, func() bool { return f.public.followers.following.count() == 1 })
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

// notingConn notes how many bytes are written under each deadline.
type notingConn struct {
	*net.TCPConn
	mu    sync.Mutex
	sizes []int
}

func (c *notingConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	c.sizes = append(c.sizes, 0)
	c.mu.Unlock()
	return c.TCPConn.SetWriteDeadline(t)
}

func (c *notingConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.sizes[len(c.sizes)-1] += len(p)
	c.mu.Unlock()
	return c.TCPConn.Write(p)
}

// A client has its time for every 32 KiB, and for the end.
func TestDeadlinesOfStreams(t *testing.T) {
	f := serve(t)
	f.public.followers.times.tick = time.Hour
	accepted := make(chan *notingConn, 1)
	addr := listenOver(t, wire.NewServer(f.public, nil), func(l net.Listener) net.Listener {
		return wire.LimitConnections(noting{l, accepted}, wire.Limits{})
	})
	t.Cleanup(f.public.EndFollowing)
	s := readFollow(t, rawFollow(t, addr, at(0)))
	s.want(at(0), "tick", "")
	f.fill(t)
	for n := range 30 {
		s.want(at(n+1), "set", "")
	}
	f.public.EndFollowing()
	s.ended()
	server := <-accepted
	server.mu.Lock()
	defer server.mu.Unlock()
	const chunk = 64 // what frames a piece
	if most := slices.Max(server.sizes); most < pieceSize || most > pieceSize+chunk {
		t.Errorf("%d bytes under one deadline", most)
	}
	sizes := slices.DeleteFunc(server.sizes, func(n int) bool { return n == 0 })
	if n := sizes[len(sizes)-1]; n > chunk {
		t.Errorf("the end has its deadline with %d bytes before it", n)
	}
}
