package projector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
	"example.org/registry/readmodel"
)

// Projector follows one stream.
type Projector struct {
	// Fixed after New.
	cfg      Config
	log      *slog.Logger
	js       jetstream.JetStream
	stream   leader.Stream
	tracker  tracker
	saver    *saver
	rejecter *rejecter
	eraser   *eraser
	restorer *restorer
	chunks   chan *chunk           // from the session's receiver to the workers
	poll     chan struct{}         // to watch: poll now; holds one
	erased   chan erasure          // from watch to the session
	restart  chan error            // to the session: the reason to restart, which verifies the stream; holds one
	joins    chan joining          // to the session; see Join
	lost     chan []events.Subject // to the session: subjects that the stream lacks

	// Owned by follow.
	phase    phase     // of catching up at start
	target   uint64    // sequence that ends the phase
	asked    time.Time // time of the request for target, in the phase toPresent
	bulk     bool      // the model is in bulk: only while catching up
	accepted bool      // the stream's configuration has been checked
	denied   bool      // the last look found no stream to go on with; see freeze
	again    reading
	owed     *readmodel.Owed // what must be known before the model may be served; nil if that is nothing

	lackingSince time.Time // when the stream began to lack entries that are shown; zero if it lacks none

	bound bound // limit up to which messages are applied

	origin atomic.Pointer[leader.Stream] // the stream's origin; nil if it is unknown, or the stream is no mirror

	receiving atomic.Pointer[receiver] // the session's, once it follows the stream; else nil. Written by follow only.

	// at is the checkpoint of the model. Written by follow only.
	at atomic.Pointer[readmodel.Checkpoint]
}

// New makes a Projector. Run starts it.
func New(cfg Config) *Projector {
	cfg = cfg.withDefaults()
	p := &Projector{
		cfg:     cfg,
		log:     cfg.Logger.With("stream", cfg.Stream),
		js:      cfg.JetStream,
		stream:  leader.Stream{JS: cfg.JetStream, Name: cfg.Stream},
		chunks:  make(chan *chunk),
		poll:    make(chan struct{}, 1),
		erased:  make(chan erasure),
		restart: make(chan error, 1),
		joins:   make(chan joining),
		lost:    make(chan []events.Subject),
		again:   reading{active: true, hold: cfg.Saved},
		owed:    cfg.Owed,
	}
	p.bound.init()
	p.tracker.began = time.Now()
	p.setCheckpoint(cfg.Saved)
	p.tracker.update(func(s *Progress) {
		s.Saved, s.LastSequence = cfg.Saved.Sequence, cfg.Saved.Sequence
		if at := cfg.Saved.Newest().Time; !at.After(p.tracker.began) { // or the broker's clock proves nothing
			s.AsOf = at
		}
	})
	p.restorer = newRestorer(p)
	p.rejecter = newRejecter(cfg, p.stream, &p.tracker, p.log)
	p.eraser = newEraser(p)
	p.saver = newSaver(cfg, &p.tracker, p.rejecter, p.log)
	return p
}

// Run follows the stream until ctx ends. It then saves what has been applied, and returns nil.
//
// It returns an error only if the operator must change something before the registry can serve: the
// stream's configuration loses events (MaxAge, AllowMsgTTL, MaxMsgs, DiscardOld, no limits
// retention); the stream is the demonstration's when it should not be, or the reverse; or it cannot
// be created. If too few nodes of a cluster are up, Run waits. The error is one line and names the
// remedy. With ReadOnly, Run also returns a permission error of the broker, which a server would
// wait out. Run may be called once.
func (p *Projector) Run(ctx context.Context) error {
	p.lackingSince = p.tracker.began.Add(-lacksFor)
	p.nameFeed()
	// Saver and rejecter finish the work that the others have passed on, so they end last.
	handed, endHanded := context.WithCancel(context.WithoutCancel(ctx))
	defer endHanded()
	var last sync.WaitGroup
	last.Go(func() { p.saver.run(handed) })
	last.Go(func() { p.rejecter.run(handed) })

	group, ctx := errgroup.WithContext(ctx)
	for range p.cfg.Workers {
		group.Go(func() error { decodeChunks(ctx, p.chunks, p.log); return nil })
	}
	group.Go(func() error { p.watch(ctx); return nil })
	group.Go(func() error { p.watchOrigin(ctx); return nil })
	group.Go(func() error { p.eraser.run(ctx); return nil })
	group.Go(func() error { p.restorer.run(ctx); return nil })
	group.Go(func() error { return p.follow(ctx) })
	err := group.Wait()

	endHanded()
	last.Wait()
	p.rejecter.finish() // first: no checkpoint is saved past a rejection that is not copied
	p.saver.finish()
	return err
}

// A failed session is retried after firstWait; each further failure doubles the wait, up to
// Config.RetryEvery.
const firstWait = 50 * time.Millisecond

// follow makes sessions until ctx ends or the operator must act.
func (p *Projector) follow(ctx context.Context) error {
	wait, first := firstWait, true
	for ctx.Err() == nil {
		began := time.Now()
		established, err := p.session(ctx)
		if ctx.Err() != nil {
			break
		}
		var unusable *unusableError
		var frozen *frozenError
		switch {
		case errors.As(err, &unusable) && !p.Progress().CaughtUp: // otherwise a state is being served
			return unusable.err
		case errors.As(err, &frozen):
			p.freeze(ctx, frozen)
		case p.cfg.ReadOnly && errors.Is(err, natserr.ErrRefused):
			return err // a replay does not wait for a change of the broker's configuration
		default:
			if established {
				wait = firstWait
			}
			p.sessionLost(err, established || first)
			first = false
			pause.For(ctx, wait-time.Since(began)) // a request that timed out was wait enough
			wait = min(2*wait, p.cfg.RetryEvery)
		}
	}
	return nil
}

// session follows the stream with one consumer until a problem occurs, and returns the problem.
// established means that the stream was the right one and messages could arrive.
func (p *Projector) session(ctx context.Context) (established bool, err error) {
	asked := time.Now()
	select {
	case <-p.restart: // this session looks again
	default:
	}
	info, err := p.ensureStream(ctx)
	if err != nil {
		return false, err
	}
	if err := p.acceptStream(info); err != nil {
		return false, err
	}
	if err := p.findOrigin(info); err != nil {
		return false, err
	}
	if err := p.prove(ctx, info); err != nil {
		return false, err
	}
	p.thaw()
	r, err := p.newReceiver(ctx)
	if err != nil {
		return false, err
	}
	defer r.close()
	// This check comes after the consumer exists and before its first message is applied. From here
	// on, replacing the stream also removes the consumer.
	if err := p.VerifyStream(ctx); err != nil {
		return false, err
	}
	end, asOf, err := p.whole(ctx, info, asked)
	if err != nil {
		return false, err
	}
	p.beginCatchUp(ctx, info, end, asOf, r.Pending)
	defer func() {
		if ctx.Err() == nil { // during shutdown the model is not served: do not sort it
			p.endBulk()
		}
	}()
	r.start(ctx, p.chunks)
	p.tracker.setTrouble(troubleSession, "")
	p.receiving.Store(r)
	defer p.receiving.Store(nil)
	return true, p.apply(ctx, r)
}

// sessionLost reports why a session ended to the operator, and logs the first end after a good
// session.
func (p *Projector) sessionLost(err error, news bool) {
	level := slog.LevelDebug
	if news {
		level = slog.LevelWarn
	}
	p.log.Log(context.Background(), level, "stream lost; following again as soon as it can be reached",
		"error", err, "checkpoint", p.Checkpoint().Sequence)
	p.tracker.setTrouble(troubleSession, "The stream is not being followed: "+err.Error()+".")
}

// recheck restarts the session, which verifies the stream first. Any goroutine may call it.
func (p *Projector) recheck(err error) {
	select {
	case p.restart <- errors.New("to be verified again: " + err.Error()): // not wrapped: the next session decides
	default:
	}
}

// wake makes the goroutine look that waits for c, which holds one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Progress returns the current Progress by one atomic load. Any goroutine may call it, before,
// during and after Run.
func (p *Projector) Progress() Progress { return p.tracker.read(time.Now()) }

// Status returns the current Status by one atomic load, without a copy. Any goroutine may call it,
// before, during and after Run.
func (p *Projector) Status() Status { return p.tracker.status() }

// VerifyStream asks the broker whether the stream is still as it was read. The error gives the reason
// why it is not, or why the broker did not answer.
// Any goroutine may call it while Run runs.
func (p *Projector) VerifyStream(ctx context.Context) error {
	info, err := p.stream.Info(ctx)
	if err != nil {
		return err
	}
	return check(ctx, p.stream, info, p.Checkpoint())
}

// Flush waits until the store holds at least what the model had applied when Flush was called. It
// is for callers that are about to copy the store, and does not wait for SaveEvery. The error is
// that of ctx, or of a failed write. Before the model has caught up once, and while Run does not
// run, it waits for ctx. Any goroutine may call it.
func (p *Projector) Flush(ctx context.Context) error {
	var applied readmodel.Checkpoint
	p.withModel(func(*readmodel.Model) { applied = p.Checkpoint() }) // the model shows a batch before its checkpoint moves
	return p.saver.flush(ctx, applied.Sequence)
}

// Checkpoint returns the model's checkpoint. Any goroutine may call it.
func (p *Projector) Checkpoint() readmodel.Checkpoint { return *p.at.Load() }

func (p *Projector) setCheckpoint(at readmodel.Checkpoint) {
	p.at.Store(&at)
	p.tracker.update(func(s *Progress) {
		s.Checkpoint, s.StreamIdentity = at.Sequence, at.StreamIdentity
		s.Stream = p.cfg.Stream
	})
}
