package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.org/registry/events/pause"
	"example.org/registry/httpapi/body"
)

const (
	reachWithin = 10 * time.Second // from the start to the first response
	writeShare  = 9                // after a write that took t, the next waits for writeShare times t
)

// Config configures Run.
type Config struct {
	URL  string // of the registry, without a trailing slash
	File string // replaced by each copy; File.mirror and File.part are next to it
	Once bool   // end when the file is up to date
	// Patience replaces reachWithin, and Pause the second between two requests, in tests.
	Patience, Pause time.Duration
	// Told is called when the file has been replaced; its error ends Run. Warn is called with
	// messages for a person. Both are required, and called by Run's goroutine.
	Told func(UpToDate) error
	Warn func(string)
}

// UpToDate describes a copy that equals the server's lists.
type UpToDate struct {
	Sequence uint64
	Entries  body.Counts
	Digest   string
}

// ForeignError is the error of an address that is not a registry's.
type ForeignError struct{ Err error }

func (e *ForeignError) Error() string { return e.Err.Error() }

// UnreachedError is the error of an address that did not respond in time.
type UnreachedError struct {
	Err    error
	Within time.Duration
}

func (e *UnreachedError) Error() string { return e.Err.Error() }

// DiskError is an error of the file or of its state.
type DiskError struct{ Err error }

func (e *DiskError) Error() string { return e.Err.Error() }
func (e *DiskError) Unwrap() error { return e.Err }

// ErrDiffers means that a copy differs from the server's report, although it has just been rebuilt.
var ErrDiffers = errors.New("the copy differs from what the server says it has, also after it was fetched anew")

// Run maintains the copy until ctx ends, whose error it returns, or with Once until it is up to
// date. Other errors are *ForeignError, *UnreachedError, *DiskError, ErrKept, ErrDiffers, and that
// of Told.
func Run(ctx context.Context, cfg Config) (err error) {
	if cfg.Patience == 0 {
		cfg.Patience = reachWithin
	}
	if cfg.Pause == 0 {
		cfg.Pause = time.Second
	}
	c, err := openCopy(ctx, cfg.File)
	if errors.Is(err, ErrKept) || errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		return &DiskError{err}
	}
	defer func() {
		if closed := c.close(); closed != nil {
			err = errors.Join(err, &DiskError{closed})
		}
	}()
	client := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	defer client.CloseIdleConnections()
	m := &mirror{Config: cfg, copy: c, feed: feed{cfg.URL, client}, dirty: true, began: len(c.entries), started: time.Now()}
	return m.run(ctx)
}

// mirror is one run.
type mirror struct {
	Config
	copy *copied
	feed feed

	anew    bool // the copy has to be rebuilt
	remade  bool // it was rebuilt, and not compared since
	level   bool // it has reached every reported sequence
	dirty   bool // the file may differ from the copy
	began   int  // entries of the copy at the start
	room    int  // entries that the copy may have before the server is asked again
	done    bool // with Once: the file is up to date
	written time.Time
	took    time.Duration // time of writing the file

	started time.Time
	reached bool // the registry has responded
	away    bool // it does not respond now, which was reported
	outages int  // consecutive
}

func (m *mirror) run(ctx context.Context) error {
	for {
		err := m.step(ctx)
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = &noAnswer{err: errors.New("it does not answer")}
		}
		var no *noAnswer
		var disk *DiskError
		switch {
		case errors.As(err, &disk):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &no):
			if err := m.outage(no); err != nil {
				return err
			}
			pause.For(ctx, m.Pause*time.Duration(min(m.outages, 15)))
			continue
		case m.done:
			return nil
		case errors.Is(err, errPause):
			pause.For(ctx, m.Pause)
		case err != nil:
			return err
		}
		m.answered()
	}
}

// errPause asks to wait before the next step.
var errPause = errors.New("pause")

// errMore means that something has changed since the last page.
var errMore = errors.New("more has changed")

// outage returns the error of an address that was never a registry's.
func (m *mirror) outage(no *noAnswer) error {
	m.reached = m.reached || no.loading
	switch {
	case !m.reached && no.foreign:
		return &ForeignError{no}
	case !m.reached && time.Since(m.started) >= m.Patience:
		return &UnreachedError{no, m.Patience}
	}
	m.outages++
	m.level = false                            // the server may refuse further long polls
	if m.reached && m.outages > 1 && !m.away { // a single outage is not reported
		m.away = true
		m.Warn(fmt.Sprintf("no answer: %s; waiting", no))
	}
	return nil
}

// patient bounds a request by the rest of Patience until the registry has responded.
func (m *mirror) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if m.reached {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, m.started.Add(m.Patience))
}

func (m *mirror) answered() {
	if m.away {
		m.Warn("the registry answers again")
	}
	m.reached, m.away, m.outages = true, false, 0
}

// step requests changes once, and compares the copy if it is level.
func (m *mirror) step(ctx context.Context) error {
	if m.anew || m.copy.state.Epoch == "" {
		if err := m.startCopy(ctx); err != nil {
			return err
		}
	}
	wait := time.Duration(0)
	if m.level && !m.Once {
		if wait = maxWait; m.dirty {
			wait = min(wait, max(time.Second, m.nextPause()))
		}
	}
	asked := time.Now()
	bounded, cancel := m.patient(ctx)
	p, err := m.feed.page(bounded, m.copy.state.Epoch, m.copy.state.Until, wait)
	cancel()
	if errors.Is(err, errGone) {
		// The feed's position may come from a cache: pause before the next request.
		m.anew = true
		return errPause
	}
	if err != nil {
		return err
	}
	m.copy.apply(p)
	m.dirty = m.dirty || len(p.Changes) > 0
	if err := m.bound(ctx); err != nil {
		return err
	}
	if m.level = p.UpToDate && m.copy.state.Until >= m.copy.state.Seen; !m.level {
		if p.UpToDate { // a replica that lags
			return errPause
		}
		return nil
	}
	switch err := m.compare(ctx); {
	case errors.Is(err, errMore) && len(p.Changes) > 0:
		return nil
	case errors.Is(err, errMore):
		return errPause // a cache has responded
	case err != nil:
		return err
	}
	if len(p.Changes) == 0 && time.Since(asked) < m.Pause {
		return errPause // a cache or an old server, which does not wait
	}
	return nil
}

// startCopy empties the copy, to be filled from the server's current feed.
func (m *mirror) startCopy(ctx context.Context) error {
	bounded, cancel := m.patient(ctx)
	h, err := m.feed.head(bounded, 0)
	cancel()
	if err != nil {
		return err
	}
	m.answered()
	if old := m.copy.state.Epoch; old != "" && old != h.Epoch {
		m.Warn("the registry has another stream now: beginning anew")
	}
	m.copy.begin(h.Epoch, h.Sequence)
	m.anew, m.level, m.dirty = false, false, true
	return nil
}

// bound returns ErrDiffers if the feed has far more entries than the server says: one that never ends
// would fill the memory.
func (m *mirror) bound(ctx context.Context) error {
	if len(m.copy.entries) <= m.room {
		return nil
	}
	h, err := m.feed.head(ctx, m.copy.state.Until)
	if err != nil {
		return err
	}
	// Entries may come while the copy is made, and those that it began with may be gone from the server.
	m.room = 2*max(h.Entries.Scammers+h.Entries.Servers+h.Entries.Legit, m.began) + 10_000
	if len(m.copy.entries) > m.room {
		return fmt.Errorf("the registry sends more entries than it has: %w", ErrDiffers)
	}
	return nil
}

// compare compares the copy with the server's report, and writes the file.
func (m *mirror) compare(ctx context.Context) error {
	h, err := m.feed.head(ctx, m.copy.state.Until)
	if err != nil {
		return err
	}
	s := m.copy.state
	switch {
	case h.Epoch != s.Epoch || h.Sequence < s.Until:
		m.level = false
		return errPause // the stream is another one, or a proxy has removed Registry-Min-Sequence
	case h.LastChange > s.Until:
		m.level = false
		return errMore
	}
	n, digest := m.copy.sum()
	if h.Entries != n || h.Digest != digest.String() {
		if m.remade {
			return ErrDiffers
		}
		m.anew, m.remade = true, true
		m.Warn(fmt.Sprintf("the copy differs from the server's at sequence %d: beginning anew", s.Until))
		return errPause
	}
	m.remade = false
	if m.dirty && (m.Once || m.nextPause() <= 0) {
		if err := m.write(); err != nil {
			return err
		}
		if err := m.Told(UpToDate{s.Until, n, h.Digest}); err != nil {
			return err
		}
	}
	m.done = m.Once
	return nil
}

// nextPause returns how long the next write of the file has to wait; if it is 0 or less, not at all.
func (m *mirror) nextPause() time.Duration {
	return writeShare*m.took - time.Since(m.written)
}

func (m *mirror) write() error {
	begun := time.Now()
	if err := m.copy.write(); err != nil {
		return &DiskError{err}
	}
	m.written, m.dirty = time.Now(), false
	m.took = m.written.Sub(begun)
	return nil
}
