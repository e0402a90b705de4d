package httpapi

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/events/pause"
	"example.org/registry/readmodel"
)

// pollers tells long polls of changes. One goroutine awaits new views for all of them, so a change
// wakes one waiter in the model. It starts with the first poll and ends with close. Any goroutine may
// use it.
type pollers struct {
	health  *Health
	waiting *places
	pages   prometheus.Counter

	leaving   chan struct{} // closed by drain
	leaveOnce sync.Once
	news      atomic.Pointer[news]

	mu      sync.Mutex
	stop    context.CancelFunc // of watch, or nil before watch has started
	closed  bool
	running sync.WaitGroup
}

const (
	// pacePerPoll times the number of polls is the least time between two changes that they are told
	// of. It bounds the CPU time of telling them at any rate of changes (deploy/capacity.md).
	pacePerPoll = 25 * time.Microsecond
	// minPace bounds what watching costs without polls.
	minPace = time.Millisecond
	// pollView is the time between two looks at the view while no new sequence comes. A view of
	// another stream may have a lower sequence, which Await would never report.
	pollView = time.Second
)

func newPollers(health *Health, waiting *places) *pollers {
	return &pollers{
		health: health, waiting: waiting, leaving: make(chan struct{}),
		pages: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "registry_feed_pages_total", Help: "Pages of the feed that were made; those that were remembered are counted once.",
		}),
	}
}

// news is the newest state of the feed, until a change comes.
type news struct {
	view atomic.Pointer[readmodel.View] // replaced by newer views without a change
	next chan struct{}                  // closed when there is newer news
}

func newNews(view *readmodel.View) *news {
	n := &news{next: make(chan struct{})}
	n.view.Store(view)
	return n
}

// start starts watch if it is not running. It reports false after drain.
func (p *pollers) start() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		p.stop = cancel
		p.news.Store(newNews(p.health.Reader.View()))
		p.running.Go(func() { p.watch(ctx) })
	}
	return true
}

// drain ends all waits, and makes new ones end at once.
func (p *pollers) drain() {
	p.leaveOnce.Do(func() { close(p.leaving) })
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
}

// close drains, then stops watch and waits until it has ended.
func (p *pollers) close() {
	p.drain()
	if p.stop != nil {
		p.stop()
	}
	p.running.Wait()
}

// watch tells all polls of each change, until ctx ends.
func (p *pollers) watch(ctx context.Context) {
	for ctx.Err() == nil {
		last := p.news.Load()
		known := last.view.Load()
		bounded, cancel := context.WithTimeout(ctx, pollView)
		_, _ = p.health.Reader.Await(bounded, known.Sequence()+1)
		cancel()

		view := p.health.Reader.View()
		if view.Epoch() == known.Epoch() && view.LastChange() == known.LastChange() {
			last.view.Store(view)
			pause.For(ctx, minPace)
			continue
		}
		p.news.Store(newNews(view))
		close(last.next)
		pause.For(ctx, max(minPace, pacePerPoll*time.Duration(p.waiting.count())))
	}
}

// await returns when the feed of that epoch has a change after since, when it is another epoch's, or
// after q.wait. Errors: errBusy, or that of r's context.
func (p *pollers) await(r *http.Request, q *feedQuery) error {
	leave, err := p.waiting.enter(r)
	if err != nil {
		return err
	}
	defer leave()
	if !p.start() {
		return nil
	}

	timer := time.NewTimer(q.wait)
	defer timer.Stop()
	for {
		n := p.news.Load()
		if v := n.view.Load(); v.LastChange() > q.since || v.Epoch() != q.epoch {
			return nil
		}
		select {
		case <-n.next:
		case <-timer.C:
			return nil
		case <-p.leaving:
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}
