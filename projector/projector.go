package projector

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/readmodel"
)

// Projector follows one stream.
type Projector struct {
	// Fixed after New.
	cfg      Config
	log      *slog.Logger
	status   status
	saver    *saver
	rejecter *rejecter
	jobs     chan *job     // to the workers
	kick     chan struct{} // asks watch to look now; holds one
	advance  chan advance  // from watch to the session
	doubt    chan error    // from watch to the session: begin anew

	// Fixed when Run starts.
	js jetstream.JetStream

	// Owned by follow.
	complete bool // the model has been caught up once, in this life or before it was saved
	bulk     bool
	began    bool      // a first session has been tried
	accepted bool      // the stream's configuration has been looked at
	started  bool      // target is known
	target   uint64    // the stream's end at start; then its end at arrived
	arrived  time.Time // when the first target had been reached; zero: not yet

	bound bound // how far messages are applied

	// at is where the model stands, and which stream that is. Written by follow only.
	at atomic.Pointer[readmodel.Checkpoint]
}

// New makes a Projector. Run starts it.
func New(cfg Config) *Projector {
	cfg = cfg.withDefaults()
	p := &Projector{
		cfg:      cfg,
		log:      cfg.Logger.With("stream", cfg.Stream),
		jobs:     make(chan *job),
		kick:     make(chan struct{}, 1),
		advance:  make(chan advance),
		doubt:    make(chan error, 1),
		complete: cfg.Saved.Sequence > 0,
		bound:    newBound(),
	}
	at := cfg.Saved
	p.at.Store(&at)
	p.status.began = time.Now()
	p.rejecter = newRejecter(cfg, &p.status, p.log)
	p.saver = newSaver(cfg, &p.status, p.rejecter, p.log)
	p.status.update(func(s *Progress) {
		s.Stream = cfg.Stream
		s.Epoch, s.Created = at.Stream.Epoch, at.Stream.Created
		s.Checkpoint, s.Saved, s.LastSequence = at.Sequence, at.Sequence, at.Sequence
		s.AsOf = at.MessageTime
	})
	return p
}

// Progress is one atomic load. Any goroutine may call it, before, during and after Run.
func (p *Projector) Progress() Progress { return p.status.read(time.Now()) }

// Standing is one atomic load. Any goroutine may call it, before, during and after Run.
func (p *Projector) Standing() Standing { return p.status.standing() }

// Run follows the stream until ctx ends, then gives the store what has been applied and returns nil.
// It returns an error only for what the operator must mend before anything is served: a stream whose
// configuration loses events (MaxAge, AllowMsgTTL, MaxMsgs, DiscardOld, no limits retention), one that is
// the demonstration's when it should not be or the reverse, or one that cannot be created (too few
// nodes of a cluster are waited for). The error is one line and says what to do. With ReadOnly it also
// returns what the broker refuses its user, for which a server waits. Run may be called once.
func (p *Projector) Run(ctx context.Context) (err error) {
	if p.js, err = jetstream.New(p.cfg.Conn, jetstream.WithDefaultTimeout(requestTimeout)); err != nil {
		return fmt.Errorf("projector: %w", err)
	}
	p.rejecter.js = p.js
	behind, stop := context.WithCancel(context.Background())
	defer stop()
	var last errgroup.Group // what the others hand over to
	last.Go(func() error { p.saver.run(behind); return nil })
	last.Go(func() error { p.rejecter.run(behind); return nil })

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.follow(ctx) })
	group.Go(func() error { p.watch(ctx); return nil })
	for range p.cfg.Workers {
		group.Go(func() error { p.work(ctx); return nil })
	}
	err = group.Wait()
	stop()
	_ = last.Wait() // its members return nil
	p.rejecter.finish()
	p.saver.finish()
	return err
}

// checkpoint is where the model stands.
func (p *Projector) checkpoint() readmodel.Checkpoint { return *p.at.Load() }

// look asks watch not to wait for its next turn.
func (p *Projector) look() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// pause waits for d or the end of ctx, and says whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
