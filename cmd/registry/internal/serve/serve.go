package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/internal/demo"
	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events/stream"
	"example.org/registry/httpapi"
	"example.org/registry/snapshots"
)

// Config configures serve.
type Config struct {
	Flags

	// Public is for httpapi. newHandlers fills in the server's own parts, such as Health.
	Public     httpapi.Config
	AdminToken string // empty for none

	Logger    *slog.Logger                    // required
	LostLines func() (unread, limited uint64) // of the log; required

	NotifySocket string // where systemd listens (NOTIFY_SOCKET); may be empty
}

// Run serves until ctx ends, then stops in order: the listeners, the handlers, the projector with
// its last save, the broker, the store, the lock. It returns nil when everything has been saved.
func Run(ctx context.Context, cfg Config) (err error) {
	limitMemory()
	lock, err := snapshots.LockDir(cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, lock.Unlock())
		if err == nil {
			cfg.Logger.Info("stopped; everything is saved")
		}
	}()

	// The addresses are bound before anything is opened, so that a mistake ends the start at once.
	s := newServer(ctx, cfg)
	defer s.cancel()
	if s.publicListener, err = bindAddress(cfg.HTTPAddr, "http-addr"); err != nil {
		return err
	}
	if s.adminListener, err = bindAddress(cfg.AdminAddr, "admin-addr"); err != nil {
		return err
	}

	return s.run(ctx)
}

// server is one running serve command.
type server struct {
	cfg       Config
	log       *slog.Logger
	began     time.Time
	live      *live
	health    *httpapi.Health
	snapshots *snapshotter

	publicListener, adminListener net.Listener

	ctx        context.Context // ends when the process is to stop
	cancel     context.CancelFunc
	rebuilding sync.Mutex // held while a generation is replaced, and while the last one is stopped
}

func newServer(ctx context.Context, cfg Config) *server {
	s := &server{cfg: cfg, log: cfg.Logger, began: time.Now(), live: newLive()}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.health = &httpapi.Health{
		Reader:       s.live,
		Readiness:    s.live.readiness,
		MaxStaleness: cfg.MaxStaleness,
		MinEntries:   cfg.MinEntries,
	}
	s.snapshots = &snapshotter{cfg: cfg, live: s.live}
	return s
}

// run serves and projects concurrently. If either fails, both end. At a stop, ctx ends, serveHTTP
// returns once its handlers have ended, and only then does project stop the projector.
func (s *server) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	drained := make(chan struct{})

	group.Go(func() error {
		defer close(drained)
		return s.serveHTTP(ctx)
	})
	group.Go(func() error {
		err := s.project(ctx, drained)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return nil // stopped before everything had started
		}
		return err
	})
	return group.Wait()
}

// project loads the store, connects to the broker and runs the projector until drained is closed, so that a
// projector runs as long as any handler. It then closes everything in reverse.
func (s *server) project(ctx context.Context, drained <-chan struct{}) (err error) {
	// The store is loaded while the embedded broker recovers.
	connected := make(chan jetstream.JetStream, 1)
	loader := loader{cfg: s.cfg, live: s.live}
	loading := task.Go(ctx, func(ctx context.Context) error { return loader.loadStore(ctx, connected) })
	defer func() { err = errors.Join(err, s.closeStore()) }()

	link := link{cfg: s.cfg, live: s.live}
	js, closeLink, err := link.connectBroker()
	if err != nil {
		_ = loading.Stop() // the broker's error says more
		return err
	}
	defer closeLink()

	s.snapshots.bucket.Store(snapshots.NewBucket(js)) // sends nothing: the broker may be away
	connected <- js
	if err := loading.Wait(); err != nil {
		return err
	}

	loaded := s.live.current()
	s.live.stream.Store(&stream.Stream{JS: js, Name: string(s.cfg.Stream)})
	if s.cfg.Demo {
		if err := s.importDemo(ctx, js, loaded.store.Meta()); err != nil {
			return err
		}
	}

	// Once this generation is shown and its model has caught up, lists and checks are answered.
	first := s.firstGeneration(loaded.model, loaded.store)
	first.start()
	s.live.showGeneration(first)
	first.startIndexing()

	making := task.Go(ctx, s.snapshots.run)
	defer func() { _ = making.Stop() }()
	return s.follow(drained)
}

// closeStore closes the model and the store that are served. A rebuild may have replaced the first ones.
func (s *server) closeStore() error {
	g := s.live.current()
	if g.store == nil {
		return nil // it was never loaded
	}
	g.model.Close()
	return g.store.Close()
}

// importDemo publishes the demonstration, if it is not there yet.
func (s *server) importDemo(ctx context.Context, js jetstream.JetStream, saved snapshots.Meta) error {
	s.live.starting.Store(new("importing the demonstration"))
	defer s.live.starting.Store(nil)
	return demo.Import(ctx, demo.Config{JetStream: js, Stream: string(s.cfg.Stream), History: int(s.cfg.StreamHistory),
		DataDir: s.cfg.DataDir, Day: time.Now(), MayCreate: saved.Epoch == "", Logger: s.log})
}
