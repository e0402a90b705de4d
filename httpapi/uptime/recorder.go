package uptime

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"example.org/registry/events/pause"
)

const (
	askEvery  = time.Minute
	saveEvery = 5 * time.Minute
	loadEvery = time.Second // until there is something to load from
)

// ErrNotOpen is what Config.Load and Config.Save return while there is nothing to load from or to
// save into yet.
var ErrNotOpen = errors.New("uptime: the store is not open")

// Config configures a Recorder. The zero value remembers in memory alone.
type Config struct {
	// Load returns what Save was last given, in this process or an earlier one; nil if it never
	// was. Nil: there is nothing to load.
	Load func() ([]byte, error)
	// Save keeps a history. Nil: it is not kept.
	Save func([]byte) error
	// Logger gets what cannot be loaded or saved. Nil: nothing is logged.
	Logger *slog.Logger
}

// Recorder remembers rounds of checks. Any goroutine may use it.
type Recorder struct {
	cfg    Config
	failed bool // the last save has; NewRecorder and Run alone load and save

	// mu is not held for Load and Save, which wait for the disk: requests want it.
	mu      sync.Mutex
	history *history // nil until the earlier one is loaded
	minute  int64    // of the last round that was counted
	changed bool     // since the last save
}

// NewRecorder returns a recorder that counts rounds once it has loaded what was known before.
func NewRecorder(cfg Config) *Recorder {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{cfg: cfg}
	r.load()
	return r
}

// Record counts a round of checks that ended at the time at, unless one of the same minute has been
// counted. What is not checked is not in it.
func (r *Recorder) Record(at time.Time, checks []Check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	minute := at.Unix() / 60
	if r.history == nil || minute == r.minute {
		return
	}
	r.history.add(at, checks)
	r.minute, r.changed = minute, true
}

// Of returns the history of a component up to the day of now, which is empty while nothing is
// loaded.
func (r *Recorder) Of(id string, now time.Time) Component {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.history == nil {
		return newHistory().of(id, now)
	}
	return r.history.of(id, now)
}

// Run has ask make a round every minute, which it is to record, and saves what is known every 5
// minutes and when ctx ends.
func (r *Recorder) Run(ctx context.Context, ask func(context.Context)) {
	defer r.save()
	for !r.load() {
		if !pause.For(ctx, loadEvery) {
			return
		}
	}
	for saved := time.Now(); pause.For(ctx, askEvery); {
		ask(ctx)
		if time.Since(saved) >= saveEvery {
			r.save()
			saved = time.Now()
		}
	}
}

// load returns false while there is nothing to load from yet. A history that cannot be read is
// given up.
func (r *Recorder) load() bool {
	if r.loaded() {
		return true
	}
	loaded := newHistory()
	if r.cfg.Load != nil {
		stored, err := r.cfg.Load()
		if errors.Is(err, ErrNotOpen) {
			return false
		}
		if err == nil {
			loaded, err = parse(stored)
		}
		if err != nil {
			r.cfg.Logger.Warn("status history cannot be read; it begins anew", "error", err.Error())
			loaded = newHistory()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = loaded
	return true
}

func (r *Recorder) loaded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history != nil
}

// save logs the first of several failures in a row.
func (r *Recorder) save() {
	if r.cfg.Save == nil {
		return
	}
	stored, err := r.unsaved()
	if stored == nil && err == nil {
		return
	}
	if err == nil {
		err = r.cfg.Save(stored)
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
