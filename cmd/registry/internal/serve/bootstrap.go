package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/pause"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

const (
	// awayLook is how often a server without saved state looks for the broker.
	awayLook = 250 * time.Millisecond
	// restoreWithin bounds the reading of all snapshots that are tried.
	restoreWithin = 30 * time.Minute
)

// load loads the store and shows its model. A damaged store is set aside. Without a store it makes one
// from a snapshot, if there is one, and only for that it waits, through connected, until the broker
// can be asked.
func (s *server) load(ctx context.Context, connected <-chan jetstream.JetStream) (*snapshots.Store, *readmodel.Model, error) {
	path := s.cfg.storePath()
	if err := errors.Join(emptyDir(s.cfg.temporaryDir()), snapshots.RemoveLeftovers(path)); err != nil {
		return nil, nil, fmt.Errorf("data directory: %w", err)
	}

	store, model, err := s.openStore(ctx, path)
	if err == nil && store == nil {
		if err = s.bootstrap(ctx, connected); err == nil {
			store, model, err = snapshots.Open(ctx, path)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	s.live.show(newGeneration(generation{model: model, store: store}))
	return store, model, nil
}

// openStore opens the store that is there. It returns none if there is none, or if it was damaged.
func (s *server) openStore(ctx context.Context, path string) (*snapshots.Store, *readmodel.Model, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	store, model, err := snapshots.Open(ctx, path)
	if !errors.Is(err, snapshots.ErrDamaged) {
		return store, model, err
	}
	aside, moving := snapshots.SetAside(path)
	if moving != nil {
		return nil, nil, errors.Join(err, moving)
	}
	s.log.Error("the store is damaged; it was renamed, and another is made", "error", err, "renamed", aside)
	return nil, nil, nil
}

// bootstrap makes a store from the newest readable snapshot of the stream's registry; the projector
// joins it with the stream. If there is none it does nothing, and everything is replayed. It only
// waits for a broker that is away, since nothing can be served without it.
//
// Where there are snapshots and the stream is missing or empty, or none of them can be read, it fails:
// the server would report every listed person as unknown.
func (s *server) bootstrap(ctx context.Context, connected <-chan jetstream.JetStream) error {
	if err := os.RemoveAll(s.cfg.rankedDir()); err != nil { // it is of a store that is gone
		return fmt.Errorf("data directory: %w", err)
	}
	if s.cfg.SkipSnapshots {
		s.log.Warn("nothing is saved here; replaying the whole stream, as --skip-snapshots says")
		return nil
	}
	defer s.live.starting.Store(nil)
	s.live.starting.Store(new("nothing is saved here; waiting for the broker"))
	var js jetstream.JetStream
	select {
	case js = <-connected:
	case <-ctx.Done():
		return ctx.Err()
	}

	info, all, err := s.findSnapshots(ctx, js)
	if err != nil || len(all) == 0 {
		return err
	}
	if info == nil || info.State.LastSeq == 0 {
		return s.refuseEmpty(info == nil, all)
	}
	s.live.starting.Store(new("nothing is saved here; loading a snapshot"))
	ctx, cancel := context.WithTimeout(ctx, restoreWithin)
	defer cancel()
	_, err = snapshots.Bootstrap(ctx, s.snapshots.bucket.Load(), stream.IdentityOf(info), s.cfg.storePath(), s.log)
	if err != nil {
		return fmt.Errorf("no snapshot of the stream %s can be used (%w), and only they tell whether the stream has lost anything; "+
			"--skip-snapshots starts without them", s.cfg.Stream, err)
	}
	return nil
}

// findSnapshots asks for the stream and its snapshots until the broker has replied. info is nil if
// there is no stream.
func (s *server) findSnapshots(ctx context.Context, js jetstream.JetStream) (info *jetstream.StreamInfo, all []snapshots.Object, err error) {
	for logged := false; ; logged = true {
		info, err = stream.Stream{JS: js, Name: s.cfg.Stream}.Info(ctx)
		if err == nil || errors.Is(err, jetstream.ErrStreamNotFound) {
			all, err = s.snapshots.bucket.Load().List(ctx)
		}
		if err == nil {
			return info, all, nil
		}
		if !logged {
			s.log.Warn("nothing is saved here, and the broker does not answer about the stream or its snapshots; waiting for it", "error", err)
		}
		s.live.starting.Store(new("nothing is saved here; waiting for the broker: " + err.Error()))
		if !pause.For(ctx, awayLook) {
			return nil, nil, ctx.Err()
		}
	}
}

// refuseEmpty returns an error if there are snapshots of a stream that is missing or empty.
func (s *server) refuseEmpty(missing bool, all []snapshots.Object) error {
	newest := slices.IndexFunc(all, func(o snapshots.Object) bool {
		return o.Err != nil || o.Header.Stream == s.cfg.Stream && o.Header.Count > 0
	})
	if newest < 0 {
		return nil
	}
	how, command := "empty", "registry recover "+all[newest].Name
	if missing {
		how, command = "missing", command+" --create-stream"
	}
	if s.cfg.embedded() { // this process is the broker, too
		command = "start with --skip-snapshots, and run registry recover " + all[newest].Name
	}
	return fmt.Errorf("the stream %s is %s, and there are snapshots of it: people who are listed would be unknown; "+
		"to bring it back: %s; --skip-snapshots alone serves an empty registry", s.cfg.Stream, how, command)
}

// emptyDir removes the content of a directory, if there is one. The directory stays: it may be a
// mounted disk.
func emptyDir(path string) error {
	left, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range left {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, entry.Name())))
	}
	return err
}
