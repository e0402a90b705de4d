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

// Config configures a Recorder. The zero value remembers in memory alone.
type Config struct {
	// Path is the file that the history is read from and saved into, such as data/status.json.
	// Empty: it is not saved.
	Path string
	// Logger gets errors of reading and saving. Nil: nothing is logged.
	Logger *slog.Logger
}

// Recorder remembers rounds of checks. Any goroutine may use it.
type Recorder struct {
	cfg    Config
	failed bool // the last save has; Run alone saves

	mu      sync.Mutex // not held while the disk is waited for
	history *history
	minute  int64 // of the last round that was counted
	changed bool  // since the last save
}

// NewRecorder returns a recorder that has read the history. A history that cannot be read is given
// up.
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

// Record counts a round of checks that ended at the time at, unless one of the same minute has been
// counted. What is not checked is not in it.
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
	return r.history.of(id, now)
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

// save logs the first of several failures in a row.
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

// unsaved returns the history to be saved, nil if it has not changed.
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
		return errors.Join(err, os.Remove(temporary)) // a full disk needs the room
	}
	return os.Rename(temporary, path)
}
