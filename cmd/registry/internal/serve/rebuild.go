package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events"
	"example.org/registry/events/failpoint"
	"example.org/registry/httpapi/admin"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

const (
	// joinWithin bounds the last step, while the old model is paused.
	joinWithin = 20 * time.Second
	// awayWithin is how long the broker may be away during a rebuild.
	awayWithin = 30 * time.Second
	// saveWithin bounds the wait for the new store before the old model is paused.
	saveWithin = 2 * time.Minute
)

// rebuilds passes operators' requests to follow, which handles one at a time.
type rebuilds struct {
	requests chan *rebuildRequest
	closed   chan struct{} // closed when no more requests are accepted
	busy     atomic.Bool
}

func newRebuilds() *rebuilds {
	return &rebuilds{requests: make(chan *rebuildRequest), closed: make(chan struct{})}
}

type rebuildRequest struct {
	admin.RebuildOptions
	ctx     context.Context
	rebuilt admin.Rebuilt // set, like err, before done is closed
	err     error
	done    chan struct{}
}

// rebuild implements POST /rebuild. It returns when the new model is shown, or when there will be
// none: the error is an admin.Refused, an admin.Unavailable, or the failure. If ctx ends first, the
// old model stays.
func (s *server) rebuild(ctx context.Context, options admin.RebuildOptions) (admin.Rebuilt, error) {
	if !s.rebuilds.busy.CompareAndSwap(false, true) {
		return admin.Rebuilt{}, admin.Refused("another rebuild is under way; wait for its end")
	}
	defer s.rebuilds.busy.Store(false)
	if _, running := s.live.progress(); !running {
		return admin.Rebuilt{}, admin.Unavailable("the saved state is still being loaded")
	}
	r := &rebuildRequest{RebuildOptions: options, ctx: ctx, done: make(chan struct{})}
	select {
	case s.rebuilds.requests <- r:
		<-r.done
		return r.rebuilt, r.err
	case <-s.rebuilds.closed:
		return admin.Rebuilt{}, admin.Unavailable("the server is stopping")
	case <-ctx.Done():
		return admin.Rebuilt{}, ctx.Err()
	}
}

// remakeEvery is the minimum time between two attempts to replace a damaged store.
const remakeEvery = time.Minute

// remake replaces a damaged store. The model in memory has no canonical state of entries, so the
// stream is read again, as by registry rebuild --yes: nobody is there to confirm it, and until then
// nothing is saved. It returns the generation that is shown afterwards.
func (s *server) remake(current *running, drained <-chan struct{}) *running {
	s.log.Error("store is damaged; making another from the stream; the state in memory is served")
	return s.answer(&rebuildRequest{RebuildOptions: admin.RebuildOptions{Yes: true}, ctx: context.Background(), done: make(chan struct{})}, current, drained)
}

// answer handles one request and returns the generation that is shown afterwards.
func (s *server) answer(r *rebuildRequest, old *running, drained <-chan struct{}) *running {
	defer close(r.done)
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	watch := task.Go(ctx, func(ctx context.Context) error {
		select {
		case <-drained:
			cancel(errors.New("the server is stopping"))
		case <-old.ended():
			cancel(errors.New("the projector has ended"))
		case <-ctx.Done():
		}
		return nil
	})
	defer watch.Stop()
	b := &rebuilding{server: s, options: r.RebuildOptions, old: old, unsaved: make(chan error, 1), began: time.Now()}
	r.rebuilt, r.err = b.run(ctx)
	b.report(r.rebuilt, r.err)
	if r.err != nil {
		return old
	}
	return b.fresh
}

// rebuilding is one running rebuild.
type rebuilding struct {
	server     *server
	options    admin.RebuildOptions
	old, fresh *running
	joined     int        // states that the new model has from the old one
	unsaved    chan error // why the new store cannot be written; holds the first reason
	began      time.Time
}

// run builds a second generation next to the old one and shows it. After an error the old one is
// unchanged.
func (b *rebuilding) run(ctx context.Context) (admin.Rebuilt, error) {
	if err := b.permitted(ctx); err != nil {
		return admin.Rebuilt{}, err
	}
	store, err := snapshots.NewReplacement(snapshots.Config{Path: b.server.cfg.storePath(), Logger: b.server.log})
	if err != nil {
		return admin.Rebuilt{}, err
	}
	b.begin(store)
	b.server.live.rebuild.Store(b)
	defer b.server.live.rebuild.Store(nil)
	aside, err := b.replace(ctx)
	if err != nil {
		_ = b.fresh.stop(b.server) // err is more specific
		return admin.Rebuilt{}, errors.Join(err, store.Discard())
	}
	rebuilt := b.outcome(aside)
	b.retire()
	return rebuilt, nil
}

// permitted returns why the rebuild must not start, or nil.
func (b *rebuilding) permitted(ctx context.Context) error {
	p := b.old.projector.Progress()
	_, asked := b.server.live.stream.Load().Info(ctx)
	switch {
	case p.Frozen():
		return admin.Refused("frozen: " + p.LastError)
	case asked != nil && (!p.Connected || errors.Is(asked, jetstream.ErrStreamNotFound)): // otherwise a cluster may be electing a leader
		return admin.Unavailable("the stream cannot be reached, and a rebuild reads it: " + asked.Error())
	case !p.CaughtUp:
		return admin.Unavailable("the read model has not caught up with the stream yet")
	}
	return b.enoughMemory()
}

// enoughMemory compares the memory limit, if there is one, with the memory of two models. The heap
// is nearly all the model's.
func (b *rebuilding) enoughMemory() error {
	need, limit := 2*int64(liveHeap()), debug.SetMemoryLimit(-1)
	b.server.log.Info("rebuild started; it takes as much memory again as the read model", "bytes", need/2)
	if need < limit || b.options.Yes {
		return nil
	}
	return admin.Refused(fmt.Sprintf("two read models take about %d MiB, and the memory limit is %d MiB; "+
		"give the server more, or repeat with --yes", need>>20, limit>>20))
}

// begin starts the replay of the stream that the old model follows.
func (b *rebuilding) begin(store *snapshots.Store) {
	p := b.old.projector.Progress()
	saved := b.old.projector.Checkpoint()
	saved.History, saved.Sequence, saved.Erased = "", 0, 0 // the replay begins before all
	saved.Positions, saved.Complete = nil, false
	b.fresh = start(b.server.newGeneration(store, watchedStore{store, b.unsaved, b.server.damaged}, readmodel.New(), saved, p.Checkpoint))
}

// watchedStore reports failures. The first stops a rebuild, since the live store may need the rest
// of the disk. Damage triggers a request for another store.
type watchedStore struct {
	*snapshots.Store
	failed  chan<- error // holds the first; nil if failures are not reported
	damaged chan<- *snapshots.Store
}

func (s *server) watched(store *snapshots.Store) watchedStore {
	return watchedStore{Store: store, damaged: s.damaged}
}

// Save implements projector.Store.
func (w watchedStore) Save(c readmodel.Commit) error {
	err := w.Store.Save(c)
	if err != nil {
		select {
		case w.failed <- err:
		default:
		}
	}
	if errors.Is(err, snapshots.ErrDamaged) {
		select {
		case w.damaged <- w.Store:
		default:
		}
	}
	return err
}

// replace does most of the work while the old generation continues, and then swaps. aside is the
// name of the old store.
func (b *rebuilding) replace(ctx context.Context) (aside string, err error) {
	if err := failpoint.Hit("rebuild/begun"); err != nil {
		return "", err
	}
	if err := b.catchUp(ctx); err != nil {
		return "", err
	}
	if err := b.save(ctx); err != nil {
		return "", err
	}
	if err := failpoint.Hit("rebuild/saved"); err != nil {
		return "", err
	}
	return b.swap(ctx)
}

// catchUp waits until the new model has reached the stream's end as of the start of the replay.
func (b *rebuilding) catchUp(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	connected := time.Now()
	for {
		p := b.fresh.projector.Progress()
		switch {
		case p.CaughtUp && p.Compared:
			return nil
		case p.Frozen():
			return admin.Refused("frozen: " + p.LastError)
		case p.Connected:
			connected = time.Now()
		case time.Since(connected) > awayWithin:
			return admin.Unavailable("the broker went away")
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.fresh.ended():
			return admin.Refused(b.fresh.following.Wait().Error())
		case err := <-b.unsaved:
			return fmt.Errorf("the new read model cannot be saved: %w", err)
		case <-tick.C:
		}
	}
}

// checkLosses compares the two models as clients see them (cmd/registry/CONTRACT.md#rebuild).
func (b *rebuilding) checkLosses() error {
	was, is := b.old.model.View(), b.fresh.model.View()
	all := 0
	for _, list := range events.Lists() {
		before, after := was.NumEntries(list), is.NumEntries(list)
		all += after
		if lost := before - after; lost*10 > before && !b.options.Yes {
			return admin.Refused(fmt.Sprintf("%s would go from %d entries to %d; repeat with --yes if that is right", list, before, after))
		}
	}
	if least := b.server.cfg.MinEntries; all < least {
		return admin.Refused(fmt.Sprintf("%d entries in all, fewer than the %d of --min-entries", all, least))
	}
	return nil
}

// save saves the new model's records in the new store.
func (b *rebuilding) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, saveWithin, errors.New("the new store was not written in time; try again"))
	defer cancel()
	if err := b.fresh.projector.Flush(ctx); err != nil {
		return fmt.Errorf("the new read model: %w", errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// swap pauses the old generation until the new one has caught up with it, so the checkpoint never
// goes back (promise 3, readmodel/doc.go). The new store takes the old one's name in one rename.
func (b *rebuilding) swap(ctx context.Context) (aside string, err error) {
	at := b.old.projector.PauseAt(0)
	defer b.old.projector.Resume()
	ctx, cancel := context.WithTimeoutCause(ctx, joinWithin, errors.New("the stream was too busy for the last step; try again"))
	defer cancel()
	if err := b.join(ctx, at); err != nil {
		return "", err
	}
	if aside, err = b.fresh.store.Replace(b.old.store); err != nil {
		return "", err
	}
	b.server.live.show(b.fresh.generation)
	return aside, nil
}

// join brings the new model to at, where the old one is paused, gives it what only the old one knows,
// and judges and saves it.
func (b *rebuilding) join(ctx context.Context, at readmodel.Checkpoint) error {
	if err := b.old.projector.VerifyStream(ctx); err != nil {
		return admin.Refused("the stream is not the one that was read: " + err.Error())
	}
	if _, err := b.fresh.model.Await(ctx, at.Sequence); err != nil {
		return context.Cause(ctx)
	}
	if p := b.fresh.projector.Progress(); p.HistoryName() != at.HistoryName() || p.Rewound != at.Rewound {
		return admin.Unavailable("the stream has changed meanwhile; try again")
	}
	if err := b.joinKnown(ctx); err != nil {
		return err
	}
	if err := b.checkLosses(); err != nil {
		return err
	}
	return b.save(ctx)
}

// joinPart is how many states the new model gets at once.
const joinPart = 4096

// joinKnown gives the new model each state of the old one that wins against its own. Most are equal,
// so only the others are read from the old store.
func (b *rebuilding) joinKnown(ctx context.Context) error {
	if b.fresh.model.View().Digest() == b.old.model.View().Digest() {
		return nil
	}
	has := map[string]readmodel.Digest{}
	b.fresh.projector.Inspect(func(m *readmodel.Model) { has = maps.Collect(m.Inventory().All()) })
	var differ []string
	b.old.projector.Inspect(func(m *readmodel.Model) {
		for name, state := range m.Inventory().All() {
			if has[name] != state {
				differ = append(differ, name)
			}
		}
	})
	if len(differ) == 0 {
		return nil
	}
	if err := b.old.projector.Flush(ctx); err != nil {
		return fmt.Errorf("the old read model cannot be saved: %w", errors.Join(err, context.Cause(ctx)))
	}
	for part := range slices.Chunk(differ, joinPart) {
		var known []events.Data
		for _, name := range part {
			subject, err := events.ParseSubject(name)
			if err != nil {
				return err
			}
			state, ok, err := b.old.store.State(subject)
			if err != nil {
				return fmt.Errorf("what only the old read model knows cannot be read: %w", err)
			}
			if ok {
				known = append(known, state.Data)
			}
		}
		if err := b.fresh.projector.Join(ctx, known); err != nil {
			return fmt.Errorf("the new read model: %w", err)
		}
	}
	b.joined = b.fresh.model.View().Lacking()
	return nil
}

// outcome returns the result. It is read before the old generation ends.
func (b *rebuilding) outcome(aside string) admin.Rebuilt {
	return admin.Rebuilt{
		Before: stateOf(b.old), After: stateOf(b.fresh), Aside: aside,
		Joined:  b.joined,
		Events:  b.fresh.projector.Progress().Applied,
		Seconds: time.Since(b.began).Seconds(),
	}
}

func stateOf(r *running) admin.ModelState {
	doc := admin.ProjectionOf(r.model.View())
	p := r.projector.Progress()
	return admin.ModelState{Epoch: p.StreamEpoch, Checkpoint: doc.Checkpoint, Digest: doc.Digest, Entries: doc.Entries}
}

// retire ends the old generation, which serves no client any more.
func (b *rebuilding) retire() {
	if err := errors.Join(b.old.stop(b.server), b.old.store.Close()); err != nil {
		b.server.log.Warn("the replaced read model did not stop cleanly; its files are kept", "error", err)
	}
}

// report counts and logs the rebuild's outcome.
func (b *rebuilding) report(r admin.Rebuilt, err error) {
	b.server.live.rebuilt[outcomeOf(err)].Add(1)
	if err != nil {
		b.server.log.Warn("rebuild abandoned; the old read model is served", "error", err)
		return
	}
	b.server.log.Info("rebuilt; the new read model is served", "events", r.Events, "took", time.Since(b.began).Round(time.Millisecond).String(),
		"before", r.Before, "after", r.After, "aside", r.Aside)
}

// document returns the rebuild's progress, or nil if none is running.
func (b *rebuilding) document(now time.Time) *admin.Rebuilding {
	if b == nil {
		return nil
	}
	p := b.fresh.projector.Progress()
	doc := &admin.Rebuilding{Done: p.Done, Total: p.Total}
	if took := now.Sub(b.began).Seconds(); took > 0 {
		doc.PerSecond = math.Round(float64(p.Done) / took)
	}
	if doc.PerSecond > 0 {
		doc.ETASeconds = math.Ceil(float64(p.Total-p.Done) / doc.PerSecond)
	}
	return doc
}

// outcome is the way a rebuild ended.
type outcome int

const (
	rebuildDone outcome = iota
	rebuildRefused
	rebuildFailed
	outcomes // their number
)

func (o outcome) String() string { return [...]string{"done", "refused", "failed"}[o] }

func outcomeOf(err error) outcome {
	var refused admin.Refused
	switch {
	case err == nil:
		return rebuildDone
	case errors.As(err, &refused):
		return rebuildRefused
	}
	return rebuildFailed
}
