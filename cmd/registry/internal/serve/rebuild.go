package serve

import (
	"context"
	"errors"
	"math"
	"os"
	"time"

	"example.org/registry/httpapi/admin"
	"example.org/registry/projector"
	"example.org/registry/snapshots"
)

// rebuild implements POST /rebuild. It returns once the new model is served. After an error or at the end of
// ctx, the old model stays. The error may be an admin.Refused or an admin.Unavailable.
func (s *server) rebuild(ctx context.Context) (admin.Rebuilt, error) {
	if !s.rebuilding.TryLock() {
		return admin.Rebuilt{}, admin.Refused("another rebuild is under way; wait for its end")
	}
	defer s.rebuilding.Unlock()
	if s.ctx.Err() != nil {
		return admin.Rebuilt{}, admin.Unavailable("the server is stopping")
	}

	old := s.live.current()
	if old.projector == nil {
		return admin.Rebuilt{}, admin.Unavailable("the saved state is still being loaded")
	}

	// The rebuild ends with the request, or with the process.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(errors.New("the server is stopping")) })()

	began := time.Now()
	rebuilt, err := s.replaceGeneration(ctx, old)
	if err != nil {
		s.log.Warn("rebuild abandoned; the old read model is served", "error", err)
		return admin.Rebuilt{}, err
	}

	rebuilt.Seconds = time.Since(began).Seconds()
	s.log.Info("rebuilt; the new read model is served", "events", rebuilt.Events, "took", time.Since(began).Round(time.Millisecond).String(),
		"before", rebuilt.Before, "after", rebuilt.After)
	return rebuilt, nil
}

// replaceGeneration makes a generation from the stream alone, beside the old one, and shows it.
func (s *server) replaceGeneration(ctx context.Context, old *generation) (admin.Rebuilt, error) {
	if err := explainRefusal(old.projector.CheckRebuild()); err != nil {
		return admin.Rebuilt{}, err
	}

	path := s.cfg.storePath() + snapshots.RebuildingSuffix
	store, model, err := snapshots.Open(ctx, path)
	if err != nil {
		_ = os.Remove(path) // Open may have made the file
		return admin.Rebuilt{}, err
	}

	// The new projector reads the stream from its beginning while the old one goes on.
	fresh := s.indexedGeneration(model, store)
	fresh.projector = old.projector.NewBeside(model, store, func() bool { return s.mayWrite(fresh) })
	fresh.start()
	s.live.rebuild.Store(&rebuilding{projector: fresh.projector, began: time.Now()})
	defer s.live.rebuild.Store(nil)

	// Replace calls the function while neither projector applies anything. There, the new store's file takes the old
	// one's name.
	var before admin.ModelState
	err = old.projector.Replace(ctx, fresh.projector, func() error {
		if err := store.Replace(old.store); err != nil {
			return err
		}
		before = stateOf(old)
		s.live.showGeneration(fresh)
		return nil
	})
	if err != nil {
		return admin.Rebuilt{}, errors.Join(explainRefusal(err), fresh.stop(s.log), store.Close(), os.Remove(path))
	}

	// The old generation serves no client any more, and its index is of the old model.
	if err := errors.Join(old.stop(s.log), old.store.Close(), os.RemoveAll(s.cfg.rankedDir())); err != nil {
		s.log.Warn("the replaced read model did not stop cleanly", "error", err)
	}

	fresh.startIndexing()
	return admin.Rebuilt{Before: before, After: stateOf(fresh), Events: fresh.projector.Progress().Applied}, nil
}

// explainRefusal makes an error Refused if an operator has to act first, or Unavailable if waiting helps.
func explainRefusal(err error) error {
	if errors.Is(err, projector.ErrKnowsMore) || errors.Is(err, projector.ErrFrozen) {
		return admin.Refused(err.Error())
	}
	if errors.Is(err, projector.ErrNotYet) {
		return admin.Unavailable(err.Error())
	}
	return err
}

func stateOf(g *generation) admin.ModelState {
	doc := admin.ProjectionOf(g.model.View())
	return admin.ModelState{Epoch: g.projector.Progress().Epoch, Checkpoint: doc.Checkpoint, Digest: doc.Digest, Entries: doc.Entries}
}

// rebuilding is a running rebuild.
type rebuilding struct {
	projector *projector.Projector
	began     time.Time
}

// describeProgress returns the rebuild's progress, or nil if none is running.
func (b *rebuilding) describeProgress() *admin.Rebuilding {
	if b == nil {
		return nil
	}

	p := b.projector.Progress()
	doc := &admin.Rebuilding{Done: p.Done, Total: p.Total}
	if took := time.Since(b.began).Seconds(); took > 0 {
		doc.PerSecond = math.Round(float64(p.Done) / took)
	}
	if doc.PerSecond > 0 {
		doc.ETASeconds = math.Ceil(float64(p.Total-p.Done) / doc.PerSecond)
	}
	return doc
}
