package httpapi

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"example.org/registry/events/pause"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// feedBody is the body of GET /api/changes.
type feedBody struct {
	Epoch      string `json:"epoch"`
	Sequence   uint64 `json:"sequence"`
	LastChange uint64 `json:"lastChange"`
	AsOf       string `json:"asOf"`
	Entries    Counts `json:"entries"`
	Digest     string `json:"digest"`
}

var feedCache = policy{control: "public, s-maxage=5"}

// serveFeed serves GET /api/changes: the position of the feed (httpapi/CONTRACT.md#changes). The answer has no tag, since asOf
// changes even if nothing else does.
func serveFeed(x *exchange) error {
	if err := checkSyntax(x.query()); err != nil {
		return err
	}
	view, err := x.loadView()
	if err != nil {
		return err
	}

	if view.Epoch() == "" { // no feed: the stream is rewound or lacks states
		return errNotReached
	}
	return x.sendJSON(feedCache, "", feedBody{
		Epoch: view.Epoch(), Sequence: view.Sequence(), LastChange: view.Feed().LastChange(), AsOf: formatTime(x.asOf),
		Entries: CountsOf(view), Digest: view.Feed().Digest().String(),
	})
}

// feedQuery asks for the changes of an epoch after a sequence.
type feedQuery struct {
	epoch string
	since uint64
	limit int
	wait  time.Duration // for a change; zero for an answer at once
}

// parseChanges reads the query string of a page of changes. It is a pure function.
func parseChanges(epoch, raw string) (feedQuery, error) {
	p := readParams(raw)
	q := feedQuery{epoch: epoch}
	since, given := p.readSequence("since")
	q.since = since
	q.limit = p.readNumber("limit", 1, bounds.MaxChanges, bounds.DefaultChanges)
	q.wait = time.Duration(p.readNumber("wait", 0, bounds.MaxWait, 0)) * time.Second
	if p.err == nil && !given {
		return q, missing("since")
	}
	return q, p.err
}

// serveChanges serves GET /api/changes/{epoch} with a page of the feed.
func serveChanges(x *exchange) error {
	q, err := parseChanges(x.c.Param("epoch"), x.query())
	if err != nil {
		return err
	}

	view, err := loadFeed(x, q)
	if err != nil {
		return err
	}

	// No cache may keep the answer to a client that asks to wait, even if there is a change already.
	if q.wait > 0 {
		x.waits = true
	}

	hasChange := view.Feed().LastChange() > q.since
	if q.wait > 0 && !hasChange {
		if err := x.api.polls.await(x.c.Request.Context(), q); err != nil {
			return err
		}

		// The wait may have used up the server's time limit for an answer, so the limit starts again.
		_ = http.NewResponseController(x.c.Writer).SetWriteDeadline(time.Now().Add(writeTimeout))

		view, err = loadFeed(x, q)
		if err != nil {
			return err
		}
	}

	return x.sendKept(feedCache, view.Feed().Tag(), func() ([]byte, error) {
		x.api.metrics.feedPages.Inc()
		page := view.Feed().Page(q.since, q.limit, readmodel.MaxFeedPageBytes)
		return makeBody(x, sizeOfFeed(&page), &page, appendFeed)
	})
}

// loadFeed loads a view of q.epoch at the sequence q.since or after it.
func loadFeed(x *exchange, q feedQuery) (*readmodel.View, error) {
	view, err := x.loadView()
	if err != nil {
		return nil, err
	}

	// A sequence means something only within its epoch, so the epoch comes first.
	if err := checkEpoch(view, q.epoch); err != nil {
		return nil, err
	}
	if view.Sequence() >= q.since {
		return view, nil
	}

	view, err = x.loadViewAt(q.since)
	if err != nil {
		return nil, err
	}

	// While loadViewAt waited, another stream may have replaced the first view's stream.
	return view, checkEpoch(view, q.epoch)
}

// checkEpoch returns nil if a view has the feed of this epoch, or errGone if its feed is of another epoch. While the stream is
// rewound or lacks states, a view has no feed and no epoch, and checkEpoch returns errNotReached.
func checkEpoch(view *readmodel.View, epoch string) error {
	switch view.Epoch() {
	case epoch:
		return nil
	case "":
		return errNotReached
	}
	return errGone
}

// polls wakes the requests that wait for a change of the feed. One goroutine awaits new views for all these requests, so that the
// model has a single waiter to wake. Any goroutine may use polls.
type polls struct {
	reader  Reader
	waiting places
	newest  atomic.Pointer[feedState]

	ctx   context.Context // ends all waits and watchChanges
	end   context.CancelFunc
	watch sync.WaitGroup // until watchChanges has returned
}

// feedState tells waiting requests whether the feed has changed.
type feedState struct {
	epoch      string
	lastChange uint64
	outdated   chan struct{} // closed when there is a newer state
}

func newFeedState(view *readmodel.View) *feedState {
	return &feedState{epoch: view.Epoch(), lastChange: view.Feed().LastChange(), outdated: make(chan struct{})}
}

const (
	// pacePerPoll is how long watchChanges pauses for each waiting request after it has woken all. The pauses bound the CPU
	// time of waking, however fast changes come (deploy/capacity.md).
	pacePerPoll = 25 * time.Microsecond
	// minPace is the shortest pause of watchChanges, even if no request waits.
	minPace = time.Millisecond
	// pollView is how long watchChanges awaits a greater sequence. It then looks at the view all the same, since a view of
	// another stream may have a lower sequence.
	pollView = time.Second
)

// newPolls returns polls for at most maxWaiting requests. A goroutine watches the reader until close.
func newPolls(reader Reader, maxWaiting int) *polls {
	p := &polls{reader: reader, waiting: newPlaces(maxWaiting)}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.newest.Store(newFeedState(reader.View()))
	p.watch.Go(p.watchChanges)
	return p
}

// close ends all waits, and returns once watchChanges has returned.
func (p *polls) close() {
	p.end()
	p.watch.Wait()
}

// watchChanges tells all polls of each change.
func (p *polls) watchChanges() {
	var seq uint64
	for p.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(p.ctx, pollView)
		_, _ = p.reader.Await(ctx, seq+1)
		cancel()

		// Take the newest view, not the awaited one: another model may have replaced the model since.
		view := p.reader.View()
		seq = view.Sequence()

		known := p.newest.Load()
		hasChanged := view.Epoch() != known.epoch || view.Feed().LastChange() != known.lastChange
		if hasChanged {
			p.newest.Store(newFeedState(view))
			close(known.outdated)
		}

		// All changes that come during this pause wake the requests once.
		pause.For(p.ctx, max(minPace, pacePerPoll*time.Duration(len(p.waiting))))
	}
}

// await returns nil once the feed has a change after q.since or another epoch, once q.wait is over, or once the server stops.
// Its error is errBusy or ctx's.
func (p *polls) await(ctx context.Context, q feedQuery) error {
	if !p.waiting.enter() {
		return errBusy
	}
	defer p.waiting.leave()

	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	for {
		state := p.newest.Load()
		if state.lastChange > q.since || state.epoch != q.epoch {
			return nil
		}

		select {
		case <-state.outdated:
		case <-timer.C:
			return nil
		case <-p.ctx.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
