package httpapi

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
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
	"example.org/registry/readmodel/fault"
)

// followers are the readers who wait for changes: those of long polls, and those who follow the
// feed as server-sent events. One goroutine awaits the views for all of them, so that a view costs
// the writer no more than one who waits. It starts with the first reader and ends with Close. Any
// goroutine may use it.
//
// That goroutine also makes the events of a change, once, and has them written, on all CPUs, to
// every connection that takes them at once. That costs less than waking a goroutine for each
// (deploy/capacity.md). A reader whose connection is full goes on in its handler's goroutine until
// it is up to date again.
//
// Nothing is queued for a reader. Each has a position in the feed, and what it is sent next is made
// of the newest view: so one who is slow passes over states that are gone, gets no text of somebody
// who has been delisted, and costs its connection and the page that it is being sent.
type followers struct {
	health *Health
	times  followTimes
	logger *slog.Logger

	waiting, following *places // of long polls, and of streams
	cut, pages         prometheus.Counter

	leaving   chan struct{} // closed by leave
	leaveOnce sync.Once
	news      atomic.Pointer[news]

	mu      sync.Mutex
	stop    context.CancelFunc // of watch; nil: it has not begun
	closed  bool
	running sync.WaitGroup

	liveMu sync.Mutex               // held while news changes
	live   map[*feedStream]struct{} // have everything up to news; watch sends them what comes
}

// followTimes are shorter in tests.
type followTimes struct {
	tick  time.Duration // between two ticks
	write time.Duration // for a reader to take backlogSize bytes
	life  time.Duration // of a stream, at most; up to a fifth less, so that they do not end together
}

const (
	// paceOf times the number of readers is the least time between two changes that readers are told
	// of. It bounds what telling them takes, however fast changes come (deploy/capacity.md).
	paceOf = 25 * time.Microsecond
	// minPart is how many followers are worth a CPU of their own.
	minPart = 64
	// minPace bounds what watching costs while nobody waits.
	minPace = time.Millisecond
	// lookAgain is how often the view is looked at when no new sequence comes. A view of another
	// stream may have a lower one, which Await would never report.
	lookAgain = time.Second

	// backlogSize bounds what is made at once for a reader that catches up, and what a reader has to
	// take at once, in bytes.
	backlogSize = 32 << 10
	// sendBuffer bounds what the system keeps for a reader that does not read, in bytes.
	sendBuffer = 64 << 10
)

func newFollowers(health *Health, waiting, following *places, logger *slog.Logger) *followers {
	return &followers{
		health: health, waiting: waiting, following: following, logger: logger, leaving: make(chan struct{}), live: map[*feedStream]struct{}{},
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
	view atomic.Pointer[readmodel.View] // newer ones without a change take its place
	next chan struct{}                  // closed when there is newer news
}

func newNews(v *readmodel.View) *news {
	n := &news{next: make(chan struct{})}
	n.view.Store(v)
	return n
}

// join takes a place of one kind for r, until leave. Its error is errBusy.
func (f *followers) join(p *places, r *http.Request) (leave func(), err error) {
	if leave, err = p.enter(r); err == nil && !f.start() {
		leave()
		return nil, errBusy
	}
	return leave, err
}

// start begins to watch, unless that has begun. It reports false once it is too late.
func (f *followers) start() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	if f.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f.stop = cancel
		f.news.Store(newNews(f.health.Reader.View()))
		f.running.Go(func() { f.watch(ctx) })
	}
	return true
}

// leave ends every wait and every stream, now and from now on.
func (f *followers) leave() {
	f.leaveOnce.Do(func() { close(f.leaving) })
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
}

// close ends every wait and stream, as leave does, then stops watch and waits until it has ended.
func (f *followers) close() {
	f.leave()
	if f.stop != nil {
		f.stop()
	}
	f.running.Wait()
}

// watch tells the readers of each change, until ctx ends.
func (f *followers) watch(ctx context.Context) {
	for ctx.Err() == nil {
		last := f.news.Load()
		was := last.view.Load()
		bounded, cancel := context.WithTimeout(ctx, lookAgain)
		_, _ = f.health.Reader.Await(bounded, was.Sequence()+1)
		cancel()
		is := f.health.Reader.View()
		if is.Epoch() == was.Epoch() && is.LastChange() == was.LastChange() {
			last.view.Store(is)
			pause.For(ctx, minPace)
			continue
		}
		f.tell(was, is)
		close(last.next)
		pause.For(ctx, max(minPace, paceOf*time.Duration(f.waiting.count()+f.following.count())))
	}
}

// tell makes is the news, and sends the streams that are up to date what has changed since was. One
// that does not take all of it at once, or has to look for itself, is handed back. Two CPUs
// take a fifth off the median time to 1,000 followers that one needs (BenchmarkFollowers).
func (f *followers) tell(was, is *readmodel.View) {
	f.liveMu.Lock()
	defer f.liveMu.Unlock()
	f.news.Store(newNews(is))
	if len(f.live) == 0 {
		return
	}
	page := f.pageOf(was, is)
	chunk := fmt.Appendf(nil, "%x\r\n%s\r\n", len(page.text), page.text)
	streams := slices.Collect(maps.Keys(f.live))
	processors := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	var parts sync.WaitGroup
	for part := range slices.Chunk(streams, max(minPart, (len(streams)+processors-1)/processors)) {
		parts.Go(func() {
			for i, s := range part {
				if page.upToDate && len(page.text) > 0 && s.at <= was.Sequence() && s.push(&page, chunk) { // else a tick was ahead of the news
					part[i] = nil
				}
			}
		})
	}
	parts.Wait()
	for _, s := range streams {
		if s != nil {
			delete(f.live, s)
			s.back <- struct{}{}
		}
	}
}

// push sends a page, or its chunk, as far as the connection takes it at once, and reports whether it
// took all.
func (s *feedStream) push(page *eventPage, chunk []byte) bool {
	text := page.text
	if s.chunked {
		text = chunk
	}
	sent := s.conn.TryWrite(text)
	if sent > 0 {
		s.at = page.until
	}
	if 0 < sent && sent < len(text) {
		s.to, s.rest = s.conn, text[sent:]
	}
	return sent == len(text)
}

// pageOf returns what the streams that are up to date are sent of is. It is empty if they have to
// look for themselves.
func (f *followers) pageOf(was, is *readmodel.View) (page eventPage) {
	err := fault.Catch(func() error {
		if is.Epoch() == was.Epoch() && f.health.admit(is, f.health.Readiness()) == nil {
			page = f.eventsAfter(is, was.LastChange(), readmodel.MaxFeedPage)
		}
		return nil
	})
	if err != nil { // each handler tries, and recovers
		f.logger.Error("events for followers could not be made", "error", err.Error())
	}
	return page
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
	return at.mark(respond.Response{More: []string{"X-Accel-Buffering", "no"}, Finish: func(c *gin.Context) {
		defer leave()
		s := newStream(c, p.followers, q)
		defer s.timer.Stop()
		s.run()
	}}), nil
}

// parseStream reads where a stream begins: after the last event that the reader has, else after
// since. It is a pure function.
func parseStream(epoch, raw string, lastEvent []string) (feedQuery, error) {
	names, values := [1]string{"since"}, [1]value{}
	p := readParams(raw, names[:], values[:])
	q := feedQuery{epoch: epoch}
	since, given := p.sequence(0)
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
	last, ok := parseSequence(lastEvent[0])
	if !ok || len(lastEvent) > 1 {
		return q, invalid("Last-Event-ID")
	}
	q.since = last
	return q, nil
}

// feedStream is one reader that follows the feed. Its fields are its handler's goroutine's. While it
// is in followers.live, at, rest, to and the sending side of conn are those of tell.
type feedStream struct {
	*followers
	c       *gin.Context
	ctx     context.Context
	conn    *wire.Conn
	chunked bool // how net/http frames the answer
	epoch   string
	at      uint64        // everything up to it has been sent, but for rest
	rest    []byte        // what is still to be written to to
	to      io.Writer     // what net/http writes to, or conn for what is framed already
	fresh   bool          // has been up to date once
	near    uint64        // the last change when it was seen to be less than 1 MiB behind
	back    chan struct{} // tells that it is no longer in followers.live
	timer   *time.Timer
	ends    time.Time
	ticks   time.Time       // when the next tick is due
	gone    <-chan struct{} // closed when the reader may have left; nil once that has been seen
}

func newStream(c *gin.Context, f *followers, q feedQuery) *feedStream {
	conn := wire.ConnOf(c.Request)
	if c.Request.ProtoMajor != 1 {
		conn = nil // what is written below net/http is framed as HTTP/1
	}
	return &feedStream{
		followers: f, c: c, ctx: c.Request.Context(), conn: conn, chunked: c.Request.ProtoAtLeast(1, 1), epoch: q.epoch, at: q.since, back: make(chan struct{}, 1),
		timer: time.NewTimer(f.times.tick), ends: time.Now().Add(f.times.life - rand.N(f.times.life/5)), gone: conn.InputEnded(),
	}
}

// run sends events until the reader leaves, falls behind or has followed for long enough, the
// stream is replaced, nothing may be answered any more, or the server stops.
func (s *feedStream) run() {
	s.c.Writer.Header()["Content-Type"] = []string{"text/event-stream"}
	s.c.Writer.WriteHeaderNow()
	s.conn.BoundUnsent(sendBuffer)
	for s.send() {
	}
	// the end, too, has to be taken in time
	_ = http.NewResponseController(s.c.Writer).SetWriteDeadline(time.Now().Add(s.times.write))
	if len(s.rest) > 0 { // an end in the middle of an event would look like the end of the event
		panic(http.ErrAbortHandler)
	}
}

// send sends what there is, or waits for more. It reports whether to go on.
func (s *feedStream) send() bool {
	v := s.news.Load().view.Load()
	switch {
	case v.Epoch() != s.epoch || s.ctx.Err() != nil || s.stopping() || !time.Now().Before(s.ends):
		return false
	case len(s.rest) > 0:
		return s.writeOn()
	case v.LastChange() > s.at:
		return s.sendChanges(v)
	case !time.Now().Before(s.ticks):
		return s.sendTick()
	}
	return s.wait()
}

func (s *feedStream) stopping() bool {
	select {
	case <-s.leaving:
		return true
	default:
		return false
	}
}

// wait leaves the stream to watch until a tick is due, it is handed back, or it has to end. It
// reports whether to go on.
func (s *feedStream) wait() bool {
	s.liveMu.Lock()
	v := s.news.Load().view.Load()
	current := v.Epoch() == s.epoch && v.LastChange() <= s.at
	if current {
		s.live[s] = struct{}{}
	}
	s.liveMu.Unlock()
	if !current {
		return true
	}
	defer func() {
		s.liveMu.Lock()
		delete(s.live, s)
		s.liveMu.Unlock()
		select {
		case <-s.back: // meanwhile
		default:
		}
	}()
	s.timer.Reset(min(time.Until(s.ticks), time.Until(s.ends)))
	select {
	case <-s.back:
		return true
	case <-s.timer.C:
		return true
	case <-s.gone:
		s.gone, s.ticks = nil, time.Time{} // a tick finds out
		return true
	case <-s.leaving:
		return false
	case <-s.ctx.Done():
		return false
	}
}

func (s *feedStream) sendChanges(v *readmodel.View) bool {
	switch {
	case s.health.admit(v, s.health.Readiness()) != nil:
		return false // as pages would be refused
	case s.fresh && s.near != v.LastChange() && !v.Feed(s.at, readmodel.MaxFeedPage, readmodel.MaxFeedPage).UpToDate:
		s.cut.Inc()
		return false
	}
	s.near = v.LastChange()
	page := s.eventsAfter(v, s.at, backlogSize)
	s.at = page.until
	return s.write(s.c.Writer, page.text)
}

// sendTick says how far the reader is and of when that is. It sends what has changed meanwhile
// first, so that the one belongs to the other.
func (s *feedStream) sendTick() bool {
	v, readiness, err := s.health.View()
	switch {
	case err != nil || v.Epoch() != s.epoch:
		return false
	case v.LastChange() > s.at:
		return s.sendChanges(v)
	}
	s.at, s.fresh, s.ticks = max(s.at, v.Sequence()), true, time.Now().Add(s.times.tick)
	return s.write(s.c.Writer, appendEvent(nil, s.at, "tick", func(dst []byte) []byte {
		dst = strconv.AppendUint(append(dst, `{"sequence":`...), s.at, 10)
		return append(append(append(dst, `,"asOf":"`...), stamp(readiness.AsOf)...), `"}`...)
	}))
}

// write sends text to w: the first piece now, and the others as rest.
func (s *feedStream) write(w io.Writer, text []byte) bool {
	s.to, s.rest = w, text
	return s.writeOn()
}

// writeOn sends a piece of rest, which the reader has to take in time.
func (s *feedStream) writeOn() bool {
	deadline := time.Now().Add(s.times.write)
	conn := http.NewResponseController(s.c.Writer)
	_ = conn.SetWriteDeadline(deadline) // fails only where nothing can be sent
	n := min(len(s.rest), backlogSize)
	_, err := s.to.Write(s.rest[:n])
	s.c.Writer.Flush()
	if err == nil && s.ctx.Err() == nil { // net/http ends the context when a flush fails
		if s.rest = s.rest[n:]; len(s.rest) == 0 {
			s.rest = nil // keep no page
		}
		_ = conn.SetWriteDeadline(time.Time{}) // the next may come much later, from watch
		return true
	}
	if !time.Now().Before(deadline) { // else it has only left
		s.cut.Inc()
	}
	return false
}
