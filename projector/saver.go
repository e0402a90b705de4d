package projector

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"example.org/registry/readmodel"
)

const (
	// maxWaiting bounds the records that wait for the store. They are the model's own, so the bound is
	// for what a store that fails for long would have to take at once.
	maxWaiting = 65_536

	// In bulk, transactions are larger: a record of a random key costs a page of its own.
	bulkSaveCount = 32_768
	bulkSaveEvery = 5 * time.Second
)

// saver hands the store what has been applied, later and together: of each subject the latest
// state, with the checkpoint and the digest of the moment.
type saver struct {
	cfg      Config
	log      *slog.Logger
	status   *status
	rejecter *rejecter
	wake     chan struct{} // holds one; the run loop looks again

	mu      sync.Mutex
	waiting map[readmodel.Key]readmodel.Record
	next    readmodel.Commit // checkpoint and digest of the latest batch; no records
	reached uint64           // what next has dealt with, also where its checkpoint is 0
	dirty   bool             // next has not been saved
	since   time.Time        // dirty since
	bulk    bool
	saving  int           // records in the transaction under way
	room    chan struct{} // closed when records have been saved

	// For flush.
	urgent int           // who waits for the store: nothing waits for its turn then
	kept   uint64        // the checkpoint that the store was given last
	failed error         // of the last attempt
	tried  chan struct{} // closed after the next attempt
}

func newSaver(cfg Config, s *status, r *rejecter, log *slog.Logger) *saver {
	return &saver{
		cfg: cfg, log: log, status: s, rejecter: r, wake: make(chan struct{}, 1),
		waiting: map[readmodel.Key]readmodel.Record{}, room: make(chan struct{}),
		kept: cfg.Saved.Sequence, tried: make(chan struct{}),
	}
}

// add takes over a batch that has been applied up to reached. While the store is too far behind
// it waits, so that nothing more is applied; the error is that of ctx.
func (s *saver) add(ctx context.Context, reached uint64, c readmodel.Commit, bulk bool) error {
	s.mu.Lock()
	for _, r := range c.Records {
		s.waiting[r.Key] = r
	}
	s.next = readmodel.Commit{Checkpoint: c.Checkpoint, Digest: c.Digest}
	s.reached, s.bulk = reached, bulk
	if !s.dirty {
		s.dirty, s.since = true, time.Now()
	}
	s.mu.Unlock()
	s.poke()
	return s.wait(ctx)
}

func (s *saver) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// wait waits for room.
func (s *saver) wait(ctx context.Context) error {
	for {
		s.mu.Lock()
		room, full := s.room, len(s.waiting)+s.saving > maxWaiting
		s.mu.Unlock()
		if !full {
			s.status.say(troubleBacklog, "")
			return nil
		}
		s.status.say(troubleBacklog, "Too much is waiting to be written to the store; nothing is applied until it has been.")
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run saves until ctx ends. A Save under way is waited for.
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
			if !pause(ctx, s.cfg.RetryEvery) {
				return
			}
		}
	}
}

// due is how long what waits may wait on.
func (s *saver) due() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	every, count := s.cfg.SaveEvery, s.cfg.SaveCount
	if s.bulk {
		every, count = bulkSaveEvery, bulkSaveCount
	}
	if !s.dirty || s.urgent > 0 || len(s.waiting) >= count {
		return 0, s.dirty
	}
	return time.Until(s.since.Add(every)), true
}

// sleep waits for d, more to save, or the end of ctx; false at the end.
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

// save gives the store everything that waits and says whether that worked. Before, the rejected events
// among it are copied: a checkpoint on disk never passes one that is not.
func (s *saver) save(ctx context.Context) bool {
	s.mu.Lock()
	batch, c, reached := s.waiting, s.next, s.reached
	s.waiting, s.dirty, s.saving = map[readmodel.Key]readmodel.Record{}, false, len(batch)
	s.mu.Unlock()
	c.Records = make([]readmodel.Record, 0, len(batch))
	for _, r := range batch {
		c.Records = append(c.Records, r)
	}
	err := s.rejecter.copied(ctx, reached)
	if err == nil {
		err = s.cfg.Store.Save(c)
		s.report(err, c.Checkpoint.Sequence)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saving = 0
	s.attempted(c.Checkpoint.Sequence, err)
	if err != nil {
		s.putBack(batch)
		return false
	}
	close(s.room)
	s.room = make(chan struct{})
	return true
}

// putBack returns a batch that was not saved, below what has come since.
func (s *saver) putBack(batch map[readmodel.Key]readmodel.Record) {
	for k, r := range s.waiting {
		batch[k] = r
	}
	s.waiting = batch
	if !s.dirty {
		s.dirty, s.since = true, time.Now()
	}
}

// report tells the operator, once for each change.
func (s *saver) report(err error, checkpoint uint64) {
	if err == nil {
		s.status.update(func(p *Progress) { p.Saved = checkpoint })
		if s.status.say(troubleStore, "") {
			s.log.Info("store written again", "checkpoint", checkpoint)
		}
		return
	}
	if s.status.say(troubleStore, "The store cannot be written: "+err.Error()+".") {
		s.log.Error("store cannot be written; the state in memory is served, writing is tried again",
			"error", err, "checkpoint", checkpoint)
	}
}

// finish saves what is left, once, after run has ended.
func (s *saver) finish() {
	if _, dirty := s.due(); !dirty {
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // what has not been copied by now keeps the checkpoint back
	if !s.save(ended) {
		s.log.Warn("the last events were not saved; they are read from the stream again at the next start",
			"checkpoint", s.reached)
	}
}
