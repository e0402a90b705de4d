package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events"
	"example.org/registry/events/failpoint"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector/lineage"
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
// stream is read again, as by registry rebuild. It returns the generation that is shown afterwards.
func (s *server) remake(current *running, drained <-chan struct{}) *running {
	s.log.Error("store is damaged; making another from the stream; the state in memory is served")
	return s.answer(&rebuildRequest{ctx: context.Background(), done: make(chan struct{})}, current, drained)
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
	relisted   int        // entries that the new model lists and the old one knows as delisted
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
	missing := errors.Is(asked, jetstream.ErrStreamNotFound)
	switch {
	case asked != nil && !missing && !p.Connected: // the last poll may have met a cluster that was electing a leader
		return admin.Unavailable("the broker cannot be reached; a rebuild reads the stream")
	case p.Frozen && !b.options.AcceptStream:
		return admin.Refused("frozen: " + p.LastError)
	case !p.CaughtUp && !p.Frozen:
		return admin.Unavailable("the read model has not caught up with the stream yet")
	}
	if err := b.streamWhole(); err != nil {
		return err
	}
	// A replay would create the stream: the backend would publish into a stream that no server
	// follows.
	if missing && b.options.AcceptStream && !b.options.Yes {
		return admin.Refused("the stream is missing; registry recover --create-stream makes it again from what this server has; " +
			"or repeat with --yes to begin with an empty one")
	}
	return b.enoughMemory()
}

// streamWhole refuses a stream that has lost subjects, which then only the old model still has. A
// frozen server skips this check: its stream is judged by its content.
func (b *rebuilding) streamWhole() error {
	p := b.old.projector.Progress()
	if p.SubjectsLost == 0 || p.Frozen || b.options.Yes {
		return nil
	}
	return admin.Refused(fmt.Sprintf("the stream has lost %d subjects, which this server still has and a rebuild would not; "+
		"registry recover publishes them; or repeat with --yes if that is right", p.SubjectsLost))
}

// enoughMemory compares the memory limit, if there is one, with the memory of two models. The heap
// is nearly all the model's.
func (b *rebuilding) enoughMemory() error {
	need, limit := 2*int64(liveHeap()), debug.SetMemoryLimit(-1)
	b.server.log.Info("rebuild started; it takes as much memory again as the read model", "bytes", need/2, "acceptStream", b.options.AcceptStream)
	if need < limit || b.options.Yes {
		return nil
	}
	return admin.Refused(fmt.Sprintf("two read models take about %d MiB, and the memory limit is %d MiB; "+
		"give the server more, or repeat with --yes", need>>20, limit>>20))
}

// begin starts the replay. Without AcceptStream it only accepts the old model's stream.
func (b *rebuilding) begin(store *snapshots.Store) {
	var saved readmodel.Checkpoint
	var known uint64
	if p := b.old.projector.Progress(); !b.options.AcceptStream {
		saved.StreamIdentity = p.StreamIdentity
		saved.History = "" // the replay begins before it
		known = p.Checkpoint
	}
	b.fresh = start(b.server.newGeneration(store, watchedStore{store, b.unsaved, b.server.damaged}, readmodel.New(), saved, known))
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
	if err := b.checkLosses(); err != nil {
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
		case p.CaughtUp:
			return nil
		case p.Frozen:
			return admin.Refused("the stream is another one: " + p.LastError)
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
	if err := b.streamWhole(); err != nil {
		return err
	}
	was, is := b.old.model.View(), b.fresh.model.View()
	all := 0
	for _, list := range events.Lists() {
		before, after := was.NumEntries(list), is.NumEntries(list)
		all += after
		if lost := before - after; lost*10 > before && !b.options.Yes {
			return admin.Refused(fmt.Sprintf("%s would go from %d entries to %d; registry recover publishes what is missing; "+
				"or repeat with --yes if that is right", list, before, after))
		}
	}
	if least := b.server.cfg.MinEntries; all < least {
		return admin.Refused(fmt.Sprintf("%d entries in all, fewer than the %d of --min-entries", all, least))
	}
	if b.continues() { // the stream's last event decides
		return nil
	}
	if b.relisted = relisted(was, is); b.relisted > 0 && !b.options.Yes {
		return admin.Refused(fmt.Sprintf("entries that would be listed again, though this server knows them as delisted or no longer trusted: %d; "+
			"registry recover publishes that into the stream first; or repeat with --yes if that is right", b.relisted))
	}
	return nil
}

// relisted counts the entries that is lists and was knows as delisted, or as persons whose trust
// was withdrawn.
func relisted(was, is *readmodel.View) (n int) {
	for _, t := range was.Withdrawn() {
		if k := t.Data.Subject(); k.Kind == events.KindEntry && is.Entry(k.List, k.ID) != nil {
			n++
		}
	}
	return n
}

// continues reports whether the new model has the old one's history. If so, the checkpoint must not
// go back.
func (b *rebuilding) continues() bool {
	old := b.old.projector.Progress()
	return !b.options.AcceptStream || !old.Frozen && old.StreamEpoch == b.fresh.projector.Progress().StreamEpoch
}

// beginHistory begins a new history, with the same name on every server that accepts the stream.
// Otherwise sequences that clients of the feed have seen would be used a second time
// (events/CONTRACT.md#histories).
func (b *rebuilding) beginHistory(ctx context.Context) error {
	_, marker, err := lineage.Begin(ctx, *b.server.live.stream.Load(), b.old.projector.Progress().HistoryName())
	if err != nil {
		return err
	}
	if _, err := b.fresh.model.Await(ctx, marker); err != nil {
		return context.Cause(ctx)
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

// join brings the new model to at, where the old one is paused, then judges and saves it. Only a
// model of another history may be before at.
func (b *rebuilding) join(ctx context.Context, at readmodel.Checkpoint) error {
	continues := b.continues()
	if continues {
		if err := b.old.projector.VerifyStream(ctx); err != nil {
			return admin.Refused("the stream is not the one that was read: " + err.Error())
		}
		if _, err := b.fresh.model.Await(ctx, at.Sequence); err != nil {
			return context.Cause(ctx)
		}
		if b.fresh.projector.Progress().HistoryName() != at.HistoryName() {
			return admin.Refused("the stream has lost the marker of its history; registry recover puts it back")
		}
	}
	if err := b.checkLosses(); err != nil {
		return err
	}
	if err := b.save(ctx); err != nil {
		return err
	}
	if err := b.judgeRecords(); err != nil || continues {
		return err
	}
	// From here on nothing is refused: a refused rebuild leaves no marker.
	if err := b.beginHistory(ctx); err != nil {
		return err
	}
	return b.save(ctx)
}

// judgeRecords is judge for the records that no list shows: donations and view totals.
func (b *rebuilding) judgeRecords() error {
	was, is := b.old.store.Records(), b.fresh.store.Records()
	for _, table := range slices.Sorted(maps.Keys(was)) {
		if before, after := was[table], is[table]; (before-after)*10 > before && !b.options.Yes && (table == "donations" || strings.HasPrefix(table, "views-")) {
			return admin.Refused(fmt.Sprintf("%s would go from %d records to %d; registry recover publishes what is missing; "+
				"or repeat with --yes if that is right", table, before, after))
		}
	}
	return nil
}

// outcome returns the result. It is read before the old generation ends.
func (b *rebuilding) outcome(aside string) admin.Rebuilt {
	return admin.Rebuilt{
		Before: stateOf(b.old), After: stateOf(b.fresh), Aside: aside,
		Relisted:                  b.relisted,
		Events:                    b.fresh.projector.Progress().Applied,
		Seconds:                   time.Since(b.began).Seconds(),
		SubjectsWithoutValidEvent: append([]string{}, b.old.projector.Progress().SubjectsWithoutValidEvent...),
	}
}

func stateOf(r *running) admin.ModelState {
	doc := admin.ProjectionOf(r.model.View())
	p := r.projector.Progress()
	return admin.ModelState{StreamEpoch: p.StreamEpoch, Checkpoint: doc.Checkpoint, Digest: doc.Digest, Entries: doc.Entries}
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
