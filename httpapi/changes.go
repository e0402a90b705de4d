package httpapi

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// feed serves GET /api/changes: the position of the feed (httpapi/CONTRACT.md#changes). It has no tag, since it has the time
// in it.
func (p *Public) feed(x *exchange) error {
	if err := readParams(x.query()).err; err != nil {
		return err
	}
	if err := x.loadView(); err != nil {
		return err
	}
	if x.view.Epoch() == "" {
		return errNotReached
	}
	sequence, _ := x.view.FeedSequence()
	return x.sendJSON(feedCache, "", feedBody{
		Epoch: x.view.Epoch(), Sequence: sequence, LastChange: x.view.LastChange(), AsOf: FormatTime(x.asOf),
		Entries: CountsOf(x.view), Digest: x.view.FeedDigest().String(),
	})
}

// feedQuery asks for the changes after a sequence.
type feedQuery struct {
	since uint64
	limit int
	wait  time.Duration // zero does not wait for a change
}

// parseChanges reads the query string of a page of changes. It is a pure function.
func parseChanges(raw string) (feedQuery, error) {
	p := readParams(raw)
	var q feedQuery
	since, given := p.sequence("since")
	q.since = since
	q.limit = p.number("limit", 1, bounds.MaxChanges, bounds.DefaultChanges)
	q.wait = time.Duration(p.number("wait", 0, bounds.MaxWait, 0)) * time.Second
	if p.err == nil && !given {
		return q, missing("since")
	}
	return q, p.err
}

// changes serves GET /api/changes/{epoch} with a page of the feed.
func (p *Public) changes(x *exchange) error {
	q, err := parseChanges(x.query())
	if err != nil {
		return err
	}
	epoch := x.c.Param("epoch")
	if err := x.loadFeed(epoch, q.since); err != nil {
		return err
	}

	if q.wait > 0 {
		x.noStore = true
		if x.view.LastChange() <= q.since {
			if err := p.polls.await(x.c.Request.Context(), epoch, q); err != nil {
				return err
			}
			_ = http.NewResponseController(x.c.Writer).SetWriteDeadline(time.Now().Add(writeTimeout)) // the server's may have passed
			if err := x.loadFeed(epoch, q.since); err != nil {
				return err
			}
		}
	}

	if sent, err := x.sendKnown(feedCache, x.view.FeedTag()); sent || err != nil {
		return err
	}
	page := x.view.Feed(q.since, q.limit, readmodel.MaxFeedPage)
	size := sizeOfFeed(page) + sizeOfEnvelope
	if err := x.takeMemory(size); err != nil {
		return err
	}
	p.polls.pages.Inc()
	return x.send(appendFeed(make([]byte, 0, size), page))
}

// loadFeed loads a state of the epoch at or after the sequence.
func (x *exchange) loadFeed(epoch string, since uint64) error {
	if err := x.loadView(); err != nil {
		return err
	}
	if err := checkEpoch(x.view, epoch); err != nil {
		return err
	}
	sequence, base := x.view.FeedSequence()
	if sequence >= since {
		return nil
	}
	if err := x.loadViewAt(since - base); err != nil {
		return err
	}
	return checkEpoch(x.view, epoch) // another stream may have replaced it
}

// checkEpoch returns why a view has no feed of this epoch: it is another one's, or has none while the stream is rewound or
// lacks states.
func checkEpoch(view *readmodel.View, epoch string) error {
	switch view.Epoch() {
	case epoch:
		return nil
	case "":
		return errNotReached
	}
	return errGone
}

// polls tells requests that wait for a change of it. One goroutine awaits new views for all of them, so a change wakes one
// waiter in the model. It runs until close. Any goroutine may use it.
type polls struct {
	reader  Reader
	waiting places
	pages   prometheus.Counter

	news    atomic.Pointer[news]
	leaving chan struct{} // closed by drain
	drain   func()
	stop    context.CancelFunc // ends watch
	running sync.WaitGroup
}

// news is the newest state of the feed, until a change comes.
type news struct {
	epoch  string
	change uint64        // the last one
	next   chan struct{} // closed when there is newer news
}

func newsOf(view *readmodel.View) *news {
	return &news{view.Epoch(), view.LastChange(), make(chan struct{})}
}

const (
	// pacePerPoll times the number of polls is the least time between two changes that they are told of. It bounds the CPU
	// time of telling them at any rate of changes (deploy/capacity.md).
	pacePerPoll = 25 * time.Microsecond
	// minPace bounds what watching costs without polls.
	minPace = time.Millisecond
	// pollView is the time between two looks at the view while no new sequence comes: a view of another stream may have a
	// lower sequence, which Await would never report.
	pollView = time.Second
)

func newPolls(reader Reader, most int) *polls {
	ctx, stop := context.WithCancel(context.Background())
	leaving := make(chan struct{})
	p := &polls{
		reader: reader, waiting: newPlaces(most), leaving: leaving, drain: sync.OnceFunc(func() { close(leaving) }), stop: stop,
		pages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "registry_feed_pages_total", Help: "Pages of the feed that were made; those that were kept are counted once.",
		}),
	}
	p.news.Store(newsOf(reader.View()))
	p.running.Go(func() { p.watch(ctx) })
	return p
}

// close ends all waits, then watch, and waits for it.
func (p *polls) close() {
	p.drain()
	p.stop()
	p.running.Wait()
}

// watch tells all polls of each change, until ctx ends.
func (p *polls) watch(ctx context.Context) {
	var sequence uint64
	for ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, pollView)
		_, _ = p.reader.Await(bounded, sequence+1)
		cancel()

		view, last := p.reader.View(), p.news.Load()
		sequence = view.Sequence()
		if view.Epoch() != last.epoch || view.LastChange() != last.change {
			p.news.Store(newsOf(view))
			close(last.next)
		}
		pause.For(ctx, max(minPace, pacePerPoll*time.Duration(len(p.waiting))))
	}
}

// await returns when the feed of that epoch has a change after q.since, when it is another epoch's, or after q.wait. Errors:
// errBusy, or that of ctx.
func (p *polls) await(ctx context.Context, epoch string, q feedQuery) error {
	if !p.waiting.enter() {
		return errBusy
	}
	defer p.waiting.leave()

	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	for {
		n := p.news.Load()
		if n.change > q.since || n.epoch != epoch {
			return nil
		}
		select {
		case <-n.next:
		case <-timer.C:
			return nil
		case <-p.leaving:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
