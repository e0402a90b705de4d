package httpapi

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/events/pause"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/respond"
	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

// followers tells clients of changes: the long polls that wait for one, and the streams that follow
// the feed as server-sent events. One goroutine awaits new views for all of them, so a change wakes
// one waiter in the model. It starts with the first client and ends with close. Any goroutine may use
// it.
//
// Nothing is queued for a client. Each has a position in the feed, and what it is sent next is made
// of the newest view: a slow client skips states that have been replaced, gets no text of an entry
// that has been delisted, and costs its connection and the page that it is being sent. Clients that
// were up to date share one page.
type followers struct {
	health *Health
	times  followTimes

	waiting, following *places // of long polls, and of streams
	cut, pages         prometheus.Counter

	leaving   chan struct{} // closed by drain
	leaveOnce sync.Once
	news      atomic.Pointer[news]

	mu      sync.Mutex
	stop    context.CancelFunc // of watch, or nil before watch has started
	closed  bool
	running sync.WaitGroup
}

// followTimes are shorter in tests.
type followTimes struct {
	tick  time.Duration // between two ticks
	write time.Duration // for a client to take pieceSize bytes
	life  time.Duration // of a stream, at most; up to a fifth less, so that they do not end together
}

const (
	// pacePerClient times the number of clients is the least time between two changes that clients
	// are told of. It bounds the CPU time of telling them at any rate of changes (deploy/capacity.md).
	pacePerClient = 25 * time.Microsecond
	// minPace bounds what watching costs without clients.
	minPace = time.Millisecond
	// pollView is the time between two looks at the view while no new sequence comes. A view of
	// another stream may have a lower sequence, which Await would never report.
	pollView = time.Second

	// pieceSize bounds, in bytes, what is made for a client that catches up, and what a client has to
	// take at a time.
	pieceSize = 32 << 10
	// sendBuffer bounds what the system keeps for a client that does not read, in bytes.
	sendBuffer = 64 << 10
)

func newFollowers(health *Health, waiting, following *places) *followers {
	return &followers{
		health: health, waiting: waiting, following: following, leaving: make(chan struct{}),
		times: followTimes{tick: 15 * time.Second, write: 10 * time.Second, life: 15 * time.Minute},
		cut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "registry_feed_followers_cut_total", Help: "Followers of the feed that were cut off: they were 1 MiB behind, or did not read.",
		}),
		pages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "registry_feed_pages_total", Help: "Pages of the feed that were made, as JSON or as events; those that were remembered or went to several followers are counted once.",
		}),
	}
}

// news is the newest state of the feed, until a change comes.
type news struct {
	view atomic.Pointer[readmodel.View] // replaced by newer views without a change
	next chan struct{}                  // closed when there is newer news

	// The changes since the previous news, as a page. Any stream at a position from `from` to `to` may
	// send it, since nothing changed between the two.
	from, to uint64
	page     func() eventPage // makes it once
}

func (f *followers) newNews(was, is *readmodel.View) *news {
	to, _ := was.FeedSequence()
	n := &news{next: make(chan struct{}), from: was.LastChange(), to: to}
	if is.Epoch() != was.Epoch() || is.LastChange() == was.LastChange() {
		n.from, n.to = 1, 0 // no stream's page
	}
	n.page = sync.OnceValue(func() eventPage { return f.eventsAfter(is, n.from, readmodel.MaxFeedPage) })
	n.view.Store(is)
	return n
}

// join reserves one of p's places for r; leave gives it back. Its error is errBusy.
func (f *followers) join(p *places, r *http.Request) (leave func(), err error) {
	if leave, err = p.enter(r); err == nil && !f.start() {
		leave()
		return nil, errBusy
	}
	return leave, err
}

// start starts watch if it is not running. It reports false after drain.
func (f *followers) start() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	if f.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f.stop = cancel
		v := f.health.Reader.View()
		f.news.Store(f.newNews(v, v))
		f.running.Go(func() { f.watch(ctx) })
	}
	return true
}

// drain ends all waits and streams, and makes new ones end at once.
func (f *followers) drain() {
	f.leaveOnce.Do(func() { close(f.leaving) })
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
}

// close drains, then stops watch and waits until it has ended.
func (f *followers) close() {
	f.drain()
	if f.stop != nil {
		f.stop()
	}
	f.running.Wait()
}

// watch tells all clients of each change, until ctx ends.
func (f *followers) watch(ctx context.Context) {
	for ctx.Err() == nil {
		last := f.news.Load()
		was := last.view.Load()
		bounded, cancel := context.WithTimeout(ctx, pollView)
		_, _ = f.health.Reader.Await(bounded, was.Sequence()+1)
		cancel()
		is := f.health.Reader.View()
		if is.Epoch() == was.Epoch() && is.LastChange() == was.LastChange() {
			last.view.Store(is)
			pause.For(ctx, minPace)
			continue
		}
		f.news.Store(f.newNews(was, is))
		close(last.next)
		pause.For(ctx, max(minPace, pacePerClient*time.Duration(f.waiting.count()+f.following.count())))
	}
}

// await returns when the feed of that epoch has a change after since, when it is another epoch's,
// after q.wait, or when gone is closed: nobody may read the answer any more. Errors: errBusy, or
// that of r's context.
func (f *followers) await(r *http.Request, q *feedQuery, gone <-chan struct{}) error {
	select {
	case <-f.leaving:
		return nil
	default:
	}
	leave, err := f.join(f.waiting, r)
	if err != nil {
		return err
	}
	defer leave()
	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	for {
		n := f.news.Load()
		if v := n.view.Load(); v.LastChange() > q.since || v.Epoch() != q.epoch {
			return nil
		}
		select {
		case <-n.next:
		case <-timer.C:
			return nil
		case <-gone:
			return nil
		case <-f.leaving:
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// eventPage is a page of the feed as server-sent events.
type eventPage struct {
	text     []byte
	until    uint64
	upToDate bool
}

// eventsAfter returns the events after since, as many as fit into size bytes.
func (f *followers) eventsAfter(v *readmodel.View, since uint64, size int) eventPage {
	f.pages.Inc()
	p := v.Feed(since, size, size) // each change has more than a byte
	page := eventPage{until: p.Until, upToDate: p.UpToDate}
	for _, c := range p.Changes {
		page.text = appendEvent(page.text, c.Sequence, body.Op(c), func(dst []byte) []byte { return body.AppendChange(dst, c) })
	}
	return page
}

// appendEvent appends an event. No JSON has a line end in it.
func appendEvent(dst []byte, id uint64, name string, data func([]byte) []byte) []byte {
	dst = strconv.AppendUint(append(dst, "id: "...), id, 10)
	dst = append(append(append(dst, "\nevent: "...), name...), "\ndata: "...)
	return append(data(dst), "\n\n"...)
}

// stream answers GET /api/changes/{epoch}/events (httpapi/CONTRACT.md#changes).
func (p *Public) stream(c *gin.Context) (respond.Response, error) {
	q, err := parseStream(c.Param("epoch"), c.Request.URL.RawQuery, c.Request.Header["Last-Event-Id"])
	if err != nil {
		return respond.Response{}, err
	}
	at, err := p.reachFeed(c, &q)
	if err != nil {
		return respond.Response{}, err
	}
	leave, err := p.followers.join(p.followers.following, c.Request)
	if err != nil {
		return respond.Response{}, err
	}
	return at.withHeaders(respond.Response{More: []string{"X-Accel-Buffering", "no"}, Finish: func(c *gin.Context) {
		defer leave()
		newStream(c, p.followers, q).run()
	}}), nil
}

// parseStream reads where a stream begins: after the last event that the reader has, else after
// since. It is a pure function.
func parseStream(epoch, raw string, lastEvent []string) (feedQuery, error) {
	p := readParams(raw)
	q := feedQuery{epoch: epoch}
	since, given := p.sequence("since")
	q.since = since
	switch {
	case p.err != nil:
		return q, p.err
	case len(lastEvent) == 0 || len(lastEvent) == 1 && lastEvent[0] == "":
		if !given {
			return q, missing("since")
		}
		return q, nil
	}
	last, ok := digits(lastEvent[0], 19)
	if !ok || len(lastEvent) > 1 {
		return q, invalid("Last-Event-ID")
	}
	q.since = last
	return q, nil
}

// feedStream is a client that follows the feed. It belongs to the handler's goroutine.
type feedStream struct {
	*followers
	c     *gin.Context
	epoch string
	at    uint64 // everything up to it has been sent
	fresh bool   // has been up to date once
	ends  time.Time
	ticks time.Time       // when the next tick is due
	gone  <-chan struct{} // closed when the client may have left; nil once a tick has been sent to find out
}

func newStream(c *gin.Context, f *followers, q feedQuery) *feedStream {
	return &feedStream{
		followers: f, c: c, epoch: q.epoch, at: q.since, gone: wire.ConnOf(c.Request).InputEnded(),
		ends: time.Now().Add(f.times.life - rand.N(f.times.life/5)),
	}
}

// run sends events until the stream is over, or the client leaves or falls behind.
func (s *feedStream) run() {
	s.c.Writer.Header()["Content-Type"] = []string{"text/event-stream"}
	s.c.Writer.WriteHeaderNow()
	wire.ConnOf(s.c.Request).BoundUnsent(sendBuffer)
	for s.send() {
	}
	s.limitWrite() // the end of the response has to be taken in time, too
}

// send sends what there is, or waits for more. It reports whether to go on.
func (s *feedStream) send() bool {
	n := s.news.Load()
	v := n.view.Load()
	switch {
	case s.over():
		return false
	case v.LastChange() > s.at:
		return s.sendChanges(n, v)
	case !time.Now().Before(s.ticks):
		return s.sendTick()
	}
	s.wait(n)
	return true
}

// over reports whether the stream has to end: the client has left, the stream has lasted for long
// enough, the events are another stream's now, or the server stops.
func (s *feedStream) over() bool {
	select {
	case <-s.leaving:
		return true
	case <-s.c.Request.Context().Done():
		return true
	default:
		return !time.Now().Before(s.ends) || s.news.Load().view.Load().Epoch() != s.epoch
	}
}

// wait waits for newer news than n, a due tick, or an end.
func (s *feedStream) wait(n *news) {
	timer := time.NewTimer(min(time.Until(s.ticks), time.Until(s.ends)))
	defer timer.Stop()
	select {
	case <-n.next:
	case <-timer.C:
	case <-s.gone:
		s.gone, s.ticks = nil, time.Time{} // a tick finds out whether the client has left
	case <-s.leaving:
	case <-s.c.Request.Context().Done():
	}
}

// sendChanges sends what has changed up to v, the view of n, or a part of it.
func (s *feedStream) sendChanges(n *news, v *readmodel.View) bool {
	if s.health.admit(v, s.health.Readiness()) != nil {
		return false // as pages would be refused
	}
	var page eventPage
	if n.from <= s.at && s.at <= n.to {
		page = n.page()
	} else {
		page = s.eventsAfter(v, s.at, pieceSize)
	}
	if s.fresh && !page.upToDate && !v.Feed(s.at, readmodel.MaxFeedPage, readmodel.MaxFeedPage).UpToDate {
		s.cut.Inc()
		return false
	}
	s.at = page.until
	return s.write(page.text)
}

// sendTick sends the client's position and the time of that state. If something has changed, it
// sends the changes instead, so that position and time belong together.
func (s *feedStream) sendTick() bool {
	n := s.news.Load()
	v, readiness, err := s.health.View()
	switch {
	case err != nil || v.Epoch() != s.epoch:
		return false
	case v.LastChange() > s.at:
		return s.sendChanges(n, v)
	}
	sequence, _ := v.FeedSequence()
	s.at, s.fresh, s.ticks = max(s.at, sequence), true, time.Now().Add(s.times.tick)
	return s.write(appendEvent(nil, s.at, "tick", func(dst []byte) []byte {
		dst = strconv.AppendUint(append(dst, `{"sequence":`...), s.at, 10)
		return append(append(append(dst, `,"asOf":"`...), body.Time(readiness.AsOf)...), `"}`...)
	}))
}

// limitWrite bounds the time that the client has for what is written next, and returns its end.
func (s *feedStream) limitWrite() time.Time {
	deadline := time.Now().Add(s.times.write)
	_ = http.NewResponseController(s.c.Writer).SetWriteDeadline(deadline) // fails only if nothing can be sent
	return deadline
}

// write sends whole events in pieces. The client has to take each piece in time. It reports whether
// to go on. If the stream has to end between two pieces, write cuts the connection: an ordinary end
// would look like the end of the last event.
func (s *feedStream) write(text []byte) bool {
	for {
		deadline, n := s.limitWrite(), min(len(text), pieceSize)
		_, err := s.c.Writer.Write(text[:n])
		s.c.Writer.Flush()
		if err != nil || s.c.Request.Context().Err() != nil { // net/http ends the context when a flush fails
			if !time.Now().Before(deadline) { // else the client has only left
				s.cut.Inc()
			}
			return false
		}
		if text = text[n:]; len(text) == 0 {
			return true
		}
		if s.over() {
			panic(http.ErrAbortHandler)
		}
	}
}
