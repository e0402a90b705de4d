package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/cmd/registry/internal/demo"
	"example.org/registry/cmd/registry/internal/task"
	"example.org/registry/events/stream"
	"example.org/registry/httpapi"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// Config configures serve. The command's flags explain the values to operators, and check them.
type Config struct {
	DataDir string // required
	Demo    bool   // publish the demonstration into an empty stream, and run stand-ins for external services

	HTTPAddr, AdminAddr string        // host:port; port 0 for any free one
	MaxConnections      int           // of the public listener; 0 derives it from the limit of open files
	IdleTimeout         time.Duration // of its connections without a request; 0 means 75 s
	// Public is passed to httpapi; serve fills in Health, Logger, Metrics, AsyncAPI and
	// Status.Database.
	Public                httpapi.Config
	AdminHost, AdminToken string        // empty for none
	MaxStaleness          time.Duration // 0 for no limit
	MinEntries            int           // 0 for no minimum

	Broker                       cli.BrokerFlags // without an address: the embedded broker
	EmbeddedAddr, EmbeddedConfig string          // of the embedded broker; config may be empty
	Stream                       string          // required
	StreamReplicas               int             // of a created stream
	StreamHistory                int             // messages kept for each subject in a created stream; 0 keeps all

	SkipSnapshots bool          // start without those that cannot be used
	SnapshotEvery time.Duration // 0 makes only snapshots that an operator requests
	SnapshotKeep  int

	Began          time.Time                       // when the process started
	SetMemoryLimit bool                            // by the memory of the container and the machine
	Logger         *slog.Logger                    // required
	LostLines      func() (unread, limited uint64) // of the log; required
	Terminal       io.Writer                       // for a person, who reads the same lines; nil if there is none

	NotifySocket string // where systemd listens (NOTIFY_SOCKET); may be empty
}

// embedded reports whether the broker runs in this process.
func (c Config) embedded() bool { return len(c.Broker.NATSURL) == 0 }

// StorePath returns the path of the read model's store in a data directory.
func StorePath(dataDir string) string { return filepath.Join(dataDir, "registry.db") }

func (c Config) storePath() string { return StorePath(c.DataDir) }

func (c Config) rankedDir() string { return filepath.Join(c.DataDir, "ranked") }
func (c Config) brokerDir() string { return filepath.Join(c.DataDir, "broker") }

// temporaryDir returns the directory of files that are useless after a crash. It is emptied at each
// start.
func (c Config) temporaryDir() string { return filepath.Join(c.DataDir, "temporary") }

// LockDir locks a data directory against other processes, and creates it if it is missing.
func LockDir(dataDir string) (*snapshots.DirLock, error) {
	lock, err := snapshots.LockDir(dataDir)
	if errors.Is(err, snapshots.ErrLocked) {
		return nil, fmt.Errorf("%w; stop that one, or choose another directory with --data-dir", err)
	}
	return lock, err
}

// Run serves until ctx ends, then stops in order: the listeners, the handlers, the projector with
// its last save, the store, the broker, the lock. It returns nil when everything has been saved.
func Run(ctx context.Context, cfg Config) (err error) {
	if cfg.SetMemoryLimit {
		setMemoryLimit()
	}
	defer func() {
		switch {
		case err != nil:
		case cfg.Terminal != nil:
			fmt.Fprintln(cfg.Terminal, "\nsaved, bye") // below ^C
		default:
			cfg.Logger.Info("stopped; everything is saved")
		}
	}()
	lock, err := LockDir(cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if info, err := os.Stat(cfg.DataDir); err == nil && info.Mode().Perm()&0o027 != 0 {
		cfg.Logger.Warn("others may look into the data directory, or its group write there; chmod 750 ends that", "path", cfg.DataDir, "mode", info.Mode().Perm().String())
	}
	s := newServer(ctx, cfg)
	defer s.cancel()
	if s.listeners, err = listen(cfg); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { s.notify("STOPPING=1") })()
	return s.run(ctx)
}

// server is one running serve command.
type server struct {
	cfg       Config
	log       *slog.Logger
	live      *live
	health    *httpapi.Health
	snapshots *snapshotter
	listeners listeners
	listening chan struct{} // closed once that is logged

	ctx        context.Context // ends when the process is to stop
	cancel     context.CancelFunc
	rebuilding sync.Mutex // held while a generation is replaced, or stopped for good
}

func newServer(ctx context.Context, cfg Config) *server {
	s := &server{cfg: cfg, log: cfg.Logger, live: newLive(), listening: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.health = &httpapi.Health{
		Reader:       s.live,
		Readiness:    s.live.readiness,
		MaxStaleness: cfg.MaxStaleness,
		MinEntries:   cfg.MinEntries,
	}
	s.snapshots = newSnapshotter(s.live, cfg)
	return s
}

// run serves and projects concurrently. If either fails, both end. To stop: ctx ends, serveHTTP
// drains its handlers and closes drained, and only then does project stop the projector.
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
	group.Go(func() error { return s.announce(ctx) })
	return group.Wait()
}

// project opens the parts of the projection, from the disk up, and follows the stream until the
// handlers have drained, so that they have a running projector to their end. It then closes
// everything in reverse.
func (s *server) project(ctx context.Context, drained <-chan struct{}) (err error) {
	var store *snapshots.Store
	var model *readmodel.Model
	connected := make(chan jetstream.JetStream, 1)
	loading := task.Go(ctx, func(ctx context.Context) (err error) {
		store, model, err = s.load(ctx, connected)
		return err
	})
	js, stop, err := s.connect() // the embedded broker recovers during the load of the store
	if err != nil {
		if loading.Stop() == nil {
			err = errors.Join(err, store.Close())
		}
		return err
	}
	defer stop()
	s.snapshots.open(js)
	connected <- js
	if err := loading.Wait(); err != nil {
		return err
	}
	defer func() { // a rebuild may have replaced the first
		s.live.current().model.Close()
		err = errors.Join(err, s.live.current().store.Close())
	}()
	s.live.stream.Store(&stream.Stream{JS: js, Name: s.cfg.Stream})
	if s.cfg.Demo {
		s.live.starting.Store(new("importing the demonstration"))
		err := demo.Import(ctx, demo.Config{JetStream: js, Stream: s.cfg.Stream, History: s.cfg.StreamHistory,
			DataDir: s.cfg.DataDir, Day: time.Now(), MayCreate: store.Meta().Epoch == "", Logger: s.log})
		s.live.starting.Store(nil)
		if err != nil {
			return err
		}
	}
	first := s.firstGeneration(model, store)
	first.start()
	s.live.show(first)
	first.startIndexing(s)
	making := task.Go(ctx, s.snapshots.run)
	defer making.Stop()
	return s.follow(drained)
}
