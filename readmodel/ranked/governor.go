package ranked

import (
	"runtime"
	"sync"
	"time"
)

// governor holds the work of an index, bleve's merges included, to its share of the processors. Any goroutine may use it.
type governor struct {
	busy     func() bool          // see Indexer.Busy
	filling  func() bool          // see Indexer.Filling
	sequence func() uint64        // the model's
	used     func() time.Duration // processor time of the process so far; nil: nobody knows

	mu     sync.Mutex
	looked time.Time
	at     uint64        // the model's sequence then
	spent  time.Duration // used then
	own    time.Duration // of the work since then
	share  float64       // of the processors; 1: whatever the work can use
	until  time.Time     // when the work of the past has been paid for
}

const (
	// shared is the index's share of the processors while somebody else wants them.
	shared = 0.25
	// rushed is its share while the model is being filled, since who fills it waits for it, and while the rest of the process takes
	// more than muchUsed of the processors: then readers want all that there are, and their connections cost others as much again.
	rushed   = 1.0 / 32
	muchUsed = 0.25
	// sharedFrom is how many changes a second make whoever makes them somebody who wants the processors, and rushedFrom how many are a
	// model that is being filled.
	sharedFrom, rushedFrom = 500, 2500
	// lookEvery is how often the share is looked at again.
	lookEvery = 500 * time.Millisecond
	// payEvery is how much work is paid for at once.
	payEvery = 5 * time.Millisecond
)

// pay waits until work that has taken d of one processor has had its share. beat is called while it waits; done ends it.
func (g *governor) pay(d time.Duration, done <-chan struct{}, beat func()) {
	rest := g.debt(d)
	if rest <= 0 {
		return
	}
	timer := time.NewTimer(min(rest, lookEvery))
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		beat()
		if rest = g.debt(0); rest <= 0 {
			return
		}
		timer.Reset(min(rest, lookEvery))
	}
}

// debt adds work and returns how long to rest.
func (g *governor) debt(d time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.own += d
	if passed := now.Sub(g.looked); passed > lookEvery {
		g.share = g.look(passed)
		g.looked = now
	}
	processors := g.share * float64(runtime.GOMAXPROCS(0))
	if g.share == 1 {
		g.until = now
		return 0
	}
	if began := now.Add(-d); g.until.Before(began) {
		g.until = began // what was not used is not saved up
	}
	g.until = g.until.Add(time.Duration(float64(d) / processors))
	return g.until.Sub(now)
}

// look returns what share of the processors the index may take, by what has happened since the last look.
func (g *governor) look(passed time.Duration) float64 {
	at, rate, others := g.sequence(), 0.0, 0.0
	var spent time.Duration
	if g.used != nil {
		spent = g.used()
	}
	if !g.looked.IsZero() {
		rate = float64(at-min(g.at, at)) / passed.Seconds()
		others = (spent - g.spent - g.own).Seconds() / passed.Seconds() / float64(runtime.GOMAXPROCS(0))
	}
	g.at, g.spent, g.own = at, spent, 0
	busy, filling := g.busy == nil || g.busy(), g.filling != nil && g.filling()
	switch {
	case filling || rate > rushedFrom || busy && others > muchUsed:
		return rushed
	case busy || rate > sharedFrom:
		return shared
	default:
		return 1
	}
}

// meter measures the work of one goroutine and pays for it.
type meter struct {
	governor *governor
	done     <-chan struct{}
	beat     func()    // says that the work goes on, and does not hang
	began    time.Time // the work that is yet to be paid for
}

// begin says that what was done before is not to be paid for: waiting.
func (m *meter) begin() { m.began = time.Now() }

// tick is called often while there is work. It may rest.
func (m *meter) tick() {
	if d := time.Since(m.began); d >= payEvery {
		m.beat()
		m.governor.pay(d, m.done, m.beat)
		m.began = time.Now()
	}
}
