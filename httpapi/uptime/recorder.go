package uptime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"example.org/registry/events/pause"
)

const (
	askEvery  = time.Minute
	saveEvery = 5 * time.Minute
)

// Config configures a Recorder. With the zero value, it stores the history only in memory.
type Config struct {
	// Path is the file of the history, such as data/status.json. If empty, it is not saved.
	Path string
	// Logger gets errors of reading and saving. If nil, nothing is logged.
	Logger *slog.Logger
}

// Recorder records rounds of checks. Any goroutine may use it.
type Recorder struct {
	cfg    Config
	failed bool // the last save failed; used by Run only

	mu      sync.Mutex // not held while waiting for the disk
	history *history
	minute  int64 // of the last counted round
	changed bool  // since the last save
}

// NewRecorder returns a recorder with the saved history. It drops a history that it cannot read.
func NewRecorder(cfg Config) *Recorder {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	r := &Recorder{cfg: cfg, history: newHistory()}
	if cfg.Path == "" {
		return r
	}
	stored, err := os.ReadFile(cfg.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return r
	}
	if err == nil {
		var h *history
		if h, err = parse(stored); err == nil {
			r.history = h
			return r
		}
	}
	cfg.Logger.Warn("status history cannot be read; it begins anew", "error", err.Error())
	return r
}

// Record adds a round of checks that ended at the given time, unless that minute already has one.
// It omits components that were not checked.
func (r *Recorder) Record(at time.Time, checks []Check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	minute := at.Unix() / 60
	if minute == r.minute {
		return
	}
	r.history.add(at, checks)
	r.minute, r.changed = minute, true
}

// Of returns the history of a component up to the day of now.
func (r *Recorder) Of(id string, now time.Time) Component {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.component(id, now)
}

// Run calls ask every minute, which records a round, and saves the history every 5 minutes and when
// ctx ends.
func (r *Recorder) Run(ctx context.Context, ask func(context.Context)) {
	defer r.save()
	for saved := time.Now(); pause.For(ctx, askEvery); {
		ask(ctx)
		if time.Since(saved) >= saveEvery {
			r.save()
			saved = time.Now()
		}
	}
}

// save logs the first of several consecutive failures.
func (r *Recorder) save() {
	if r.cfg.Path == "" {
		return
	}
	stored, err := r.unsaved()
	if stored == nil && err == nil {
		return
	}
	if err == nil {
		err = write(r.cfg.Path, stored)
	}
	if err != nil && !r.failed {
		r.cfg.Logger.Warn("status history cannot be saved; it is tried again in a while", "error", err.Error())
	}
	if r.failed = err != nil; r.failed {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed = true
	}
}

// unsaved returns the history to be saved, or nil if it has not changed.
func (r *Recorder) unsaved() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.changed {
		return nil, nil
	}
	r.changed = false
	return json.Marshal(r.history)
}

// write replaces the file at path in one step.
func write(path string, b []byte) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, b, 0o600); err != nil {
		return errors.Join(err, os.Remove(temporary)) // a full disk needs the space
	}
	return os.Rename(temporary, path)
}
