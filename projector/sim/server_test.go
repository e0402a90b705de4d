package sim

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/projector"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// process is a server while it lives: the projector, its model, and its store.
type process struct {
	p      *projector.Projector
	model  *readmodel.Model
	store  *snapshots.Store
	disk   *disk
	js     jetstream.JetStream
	cancel context.CancelFunc
	ended  chan error

	// What the judge knows of it.
	saved    readmodel.Checkpoint // at its start
	atStart  *twin
	view     uint64
	caughtUp bool
}

// disk stands between a projector and its store. Writes may be slow, fail, or be kept although
// they are said to have failed.
type disk struct {
	*snapshots.Store
	w *world

	mu    sync.Mutex
	rng   *rand.Rand
	fail  float64
	slow  time.Duration
	dead  bool // the process has been killed: nothing reaches the disk any more
	saved uint64
}

var errDisk = errors.New("sim: input/output error")

// Save implements projector.Store.
func (d *disk) Save(c readmodel.Commit) error {
	d.mu.Lock()
	fails, kept := d.rng.Float64() < d.fail, d.rng.IntN(2) == 0
	slow := d.slow
	d.mu.Unlock()
	if slow > 0 {
		d.w.tally.hit("slow disk")
		time.Sleep(slow)
	}
	d.w.checkCopied(c.Checkpoint.Sequence)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return errDisk
	}
	if fails && !kept {
		d.w.tally.hit("write failed and lost")
		return errDisk
	}
	if c.Checkpoint.Sequence < d.saved {
		d.w.violation("R2: the saved checkpoint goes back from %d to %d", d.saved, c.Checkpoint.Sequence)
	}
	if err := d.Store.Save(c); err != nil {
		d.w.violation("R7: the store fails: %v", err)
		return err
	}
	d.saved = c.Checkpoint.Sequence
	if fails {
		d.w.tally.hit("write failed and kept")
		return errDisk
	}
	return nil
}

func (d *disk) set(fail float64, slow time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail, d.slow = fail, slow
}

func (d *disk) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
}

// connect makes the server's connection, over the wire.
func (w *world) connect() jetstream.JetStream {
	nc, err := nats.Connect("", append(projector.ConnectOptions(), nats.InProcessServer(w.wire), nats.ReconnectJitter(0, 0), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	w.must(err)
	js, err := jetstream.New(nc)
	w.must(err)
	return js
}

// start starts the server on what its data directory has. Where it has nothing, a snapshot is
// tried first, as cmd/registry does.
func (w *world) start() { w.startFrom(w.bootstrap) }

// rebuild starts the server on an empty store.
func (w *world) rebuild() {
	w.removeStore()
	w.loosen()
	w.tally.hit("rebuilt")
	w.startFrom(nil)
}

func (w *world) startFrom(bootstrap func(context.Context, jetstream.JetStream) error) {
	pr := &process{js: w.connect(), ended: make(chan error, 1), atStart: w.twin.clone()}
	open := snapshots.Config{Path: w.storePath()}
	if bootstrap != nil {
		open.Restore = func(ctx context.Context) error { return bootstrap(ctx, pr.js) }
	}
	store, model, err := snapshots.Open(context.Background(), open)
	w.must(err)
	if damaged, _ := filepath.Glob(w.storePath() + ".damaged*"); len(damaged) > 0 {
		w.violation("R7: the store does not load: %v", damaged)
	}
	pr.store, pr.model, pr.saved = store, model, store.Checkpoint()
	pr.disk = &disk{Store: store, w: w, rng: rand.New(rand.NewPCG(w.seed, 2)), saved: pr.saved.Sequence}
	cfg := projector.Config{
		JetStream: pr.js, History: w.broker.kept, Erase: func() bool { return true }, Model: model, Store: pr.disk, Saved: pr.saved, Workers: 2,
		Logger: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Duration("t", time.Since(w.began))
			}
			return a
		}})),
	}
	w.knobs(&cfg)
	w.running(cfg, pr)
}

func (w *world) running(cfg projector.Config, pr *process) {
	pr.p = projector.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	pr.cancel = cancel
	pr.view = pr.model.View().Sequence()
	w.server = pr
	go func() { pr.ended <- pr.p.Run(ctx) }()
	w.say("server started at %d, the stream ends at %d", pr.saved.Sequence, w.twin.end)
}

// knobs draws the sizes and intervals that decide how many turns a small stream takes.
func (w *world) knobs(cfg *projector.Config) {
	pick := func(of ...int) int { return of[w.rng.IntN(len(of))] }
	cfg.Limits = projector.Limits{Pull: pick(0, 64, 16, 8), Bulk: pick(0, 50), Waiting: pick(0, 0, 40)}
	cfg.SaveCount = pick(0, 0, 1, 20)
	cfg.SaveEvery = time.Duration(pick(0, 0, 50, 2000)) * time.Millisecond
	cfg.VerifyEvery = time.Duration(pick(0, 0, 1, 20)) * time.Second
}

// stop ends the server: in order, or as kill -9 does.
func (w *world) stop(kill bool) {
	pr := w.server
	if pr == nil {
		return
	}
	w.look()
	if kill {
		w.tally.hit("server killed")
		pr.disk.kill()
		w.wire.cut()
	} else {
		w.tally.hit("server stopped")
	}
	pr.cancel()
	select {
	case err := <-pr.ended:
		if err != nil {
			w.violation("R9: Run ends with %v", err)
		}
	case <-time.After(10 * time.Minute):
		w.violation("R9: Run does not end")
		<-pr.ended
	}
	pr.js.Conn().Close()
	w.must(pr.store.Close())
	w.ledger.killed(pr.disk.saved, w.twin)
	w.server, w.lastSaved = nil, pr.disk.saved
	w.say("server stopped, killed %v, saved %d", kill, pr.disk.saved)
}

// loseData takes the data directory away from a server that is stopped.
func (w *world) loseData() {
	w.removeStore()
	w.tally.hit("data directory lost")
	w.ledger.killed(0, w.twin)
	w.loosen()
}

func (w *world) removeStore() {
	files, err := filepath.Glob(w.storePath() + "*")
	w.must(err)
	for _, f := range files {
		w.must(os.Remove(f))
	}
	w.lastSaved = 0
}

// loosen notes what only a server could know that was there all the time.
func (w *world) loosen() {
	w.absorbAll()
	now := w.replay()
	for name, s := range w.twin.subjects {
		if now.subjects[name].valid != s.valid {
			s.loose = true
			w.twin.subjects[name] = s
		}
	}
}
