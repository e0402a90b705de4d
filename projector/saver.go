package projector

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/pause"
	"example.org/registry/readmodel"
)

const (
	// maxWaiting bounds the records that wait for the store. The model holds them anyway, so this
	// bounds what a store that failed for long has to save at once.
	maxWaiting = 65_536

	// In bulk, transactions are larger: a record with a random key costs a whole page.
	bulkSaveCount = 32_768
	bulkSaveEvery = 5 * time.Second

	// maxSaveBytes of values are saved at once: the transaction holds them twice in memory, and
	// strangers decide how long a reason is.
	maxSaveBytes = 64 << 20
)

// saver saves applied events in the store, later and together: the latest state of each subject,
// with the checkpoint and the digest of that moment.
type saver struct {
	cfg      Config
	log      *slog.Logger
	tracker  *tracker
	rejecter *rejecter
	wake     chan struct{} // to run: check again; holds one

	mu      sync.Mutex
	waiting map[events.Subject]readmodel.Record
	bytes   int                         // of the values of waiting
	lacking map[events.Subject]struct{} // whose sequence is to be cleared; none is in waiting
	next    readmodel.Commit            // checkpoint and digest of the latest batch; no records
	reached uint64                      // the model's checkpoint at next, even if next has checkpoint 0
	dirty   bool                        // next has not been saved
	since   time.Time                   // when dirty was set
	bulk    bool
	writing map[events.Subject]readmodel.Record // in the current transaction
	room    chan struct{}                       // closed when records have been saved

	// For flush. A checkpoint does not tell what the store has: states that were joined have none.
	added  uint64        // counts commits
	stored uint64        // of them, how many the store has
	urgent int           // flushes in progress: saving waits for nothing
	saved  uint64        // the highest saved checkpoint
	failed error         // of the last attempt
	tried  chan struct{} // closed after the next attempt
}

func newSaver(cfg Config, t *tracker, r *rejecter, log *slog.Logger) *saver {
	return &saver{
		cfg: cfg, log: log, tracker: t, rejecter: r, wake: make(chan struct{}, 1),
		waiting: map[events.Subject]readmodel.Record{}, lacking: map[events.Subject]struct{}{}, room: make(chan struct{}),
		reached: cfg.Saved.Sequence, saved: cfg.Saved.Sequence, tried: make(chan struct{}),
	}
}

// add adds a batch that brought the model to reached. While too much waits for the store it waits,
// which stops the projector; its only error is that of ctx.
func (s *saver) add(ctx context.Context, reached uint64, c readmodel.Commit, bulk bool) error {
	s.mu.Lock()
	s.put(slices.Values(c.Records), slices.Values(c.Lacking))
	s.next = readmodel.Commit{Checkpoint: c.Checkpoint, Digest: c.Digest}
	s.reached, s.bulk = reached, bulk
	s.added++
	if !s.dirty {
		s.dirty, s.since = true, time.Now()
	}
	s.mu.Unlock()
	wake(s.wake)
	return s.awaitRoom(ctx)
}

// put adds to what waits. The caller must hold s.mu.
func (s *saver) put(records iter.Seq[readmodel.Record], lacking iter.Seq[events.Subject]) {
	for r := range records {
		s.bytes += r.ValueSize() - s.waiting[r.Subject].ValueSize()
		s.waiting[r.Subject] = r
		delete(s.lacking, r.Subject)
	}
	for k := range lacking {
		if r, waits := s.waiting[k]; waits {
			s.waiting[k] = r.Lacking()
		} else {
			s.lacking[k] = struct{}{}
		}
	}
}

func (s *saver) awaitRoom(ctx context.Context) error {
	for {
		s.mu.Lock()
		room, full := s.room, len(s.waiting)+len(s.lacking)+len(s.writing) > s.cfg.Limits.Waiting
		s.mu.Unlock()
		if !full {
			s.tracker.setTrouble(troubleBacklog, "")
			return nil
		}
		s.tracker.setTrouble(troubleBacklog, "Too much is waiting to be written to the store; nothing is applied until it has been.")
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// has reports whether everything up to a sequence has been applied, and nothing of k waits for the
// store. The saved checkpoint does not tell: it may be from before the stream was rewound.
func (s *saver) has(k events.Subject, sequence uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waits := s.waiting[k]
	_, inWriting := s.writing[k]
	return s.reached >= sequence && !waits && !inWriting
}

// run saves until ctx ends. It waits for a running Save.
func (s *saver) run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		for {
			due, dirty := s.due()
			if !dirty {
				break
			}
			if due > 0 {
				if !s.sleep(ctx, due) {
					return
				}
				continue
			}
			if s.save(ctx) {
				continue
			}
			if !pause.For(ctx, s.cfg.RetryEvery) {
				return
			}
		}
	}
}

// due returns how much longer the pending commit may wait.
func (s *saver) due() (in time.Duration, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	every, count := s.cfg.SaveEvery, s.cfg.SaveCount
	if s.bulk {
		every, count = bulkSaveEvery, bulkSaveCount
	}
	if !s.dirty || s.urgent > 0 || len(s.waiting) >= count || s.bytes >= maxSaveBytes {
		return 0, s.dirty
	}
	return time.Until(s.since.Add(every)), true
}

// sleep waits for d, for more to save, or for the end of ctx, in which case it returns false.
func (s *saver) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// save saves the pending commit and reports whether that worked. It first waits for the copies of
// rejected events: no checkpoint on disk passes an event that is not copied.
func (s *saver) save(ctx context.Context) bool {
	s.mu.Lock()
	batch, size, lacking, c, reached, added := s.waiting, s.bytes, s.lacking, s.next, s.reached, s.added
	s.waiting, s.bytes, s.dirty, s.writing = make(map[events.Subject]readmodel.Record, len(batch)), 0, false, batch
	s.lacking = map[events.Subject]struct{}{}
	s.mu.Unlock()
	c.Records = slices.AppendSeq(make([]readmodel.Record, 0, len(batch)), maps.Values(batch))
	c.Lacking = slices.Collect(maps.Keys(lacking))
	err := s.rejecter.awaitCopies(ctx, reached)
	if err == nil {
		err = s.cfg.Store.Save(c)
		s.report(err, c.Checkpoint.Sequence)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing, s.failed = nil, err
	close(s.tried)
	s.tried = make(chan struct{})
	if err != nil {
		newer, newerLacking := s.waiting, s.lacking
		s.waiting, s.bytes, s.lacking = batch, size, lacking
		s.put(maps.Values(newer), maps.Keys(newerLacking))
		if !s.dirty {
			s.dirty, s.since = true, time.Now()
		}
		return false
	}
	s.saved = c.Checkpoint.Sequence // less than before after a rewind
	s.stored = added
	close(s.room)
	s.room = make(chan struct{})
	return true
}

// report reports the result of a Save to the operator, once for each change.
func (s *saver) report(err error, checkpoint uint64) {
	if err == nil {
		s.tracker.update(func(p *Progress) { p.Saved = checkpoint })
		if s.tracker.setTrouble(troubleStore, "") {
			s.log.Info("store written again", "checkpoint", checkpoint)
		}
		return
	}
	if s.tracker.setTrouble(troubleStore, "The store cannot be written: "+err.Error()+".") {
		s.log.Error("store cannot be written; the state in memory is served; retrying",
			"error", err, "checkpoint", checkpoint)
	}
}

// flush waits until the store has what has been added, and a checkpoint of at least seq.
func (s *saver) flush(ctx context.Context, seq uint64) error {
	s.addUrgent(1)
	defer s.addUrgent(-1)
	s.mu.Lock()
	added := s.added
	s.mu.Unlock()
	for first := true; ; first = false {
		s.mu.Lock()
		saved, stored, failed, tried := s.saved, s.stored, s.failed, s.tried
		s.mu.Unlock()
		switch {
		case saved >= seq && stored >= added:
			return nil
		case failed != nil && !first:
			return fmt.Errorf("save what has been applied: %w", failed)
		}
		select {
		case <-tried:
		case <-ctx.Done():
			return fmt.Errorf("save what has been applied: %w", ctx.Err())
		}
	}
}

// addUrgent changes the number of flushes in progress, during which saving waits for nothing.
func (s *saver) addUrgent(by int) {
	s.mu.Lock()
	s.urgent += by
	s.mu.Unlock()
	wake(s.wake)
}

// finish saves the rest, once, after run has ended.
func (s *saver) finish() {
	if _, dirty := s.due(); !dirty {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // events not copied by now hold the checkpoint back
	if !s.save(ended) {
		s.log.Warn("the last events were not saved; they are read from the stream again at the next start",
			"checkpoint", s.reached)
	}
}
