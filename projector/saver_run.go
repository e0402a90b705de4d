package projector

import (
	"context"
	"time"

	"example.org/registry/readmodel"
)

// In bulk, transactions are larger: a record of a random key costs a page of its own.
const (
	bulkSaveCount = 32_768
	bulkSaveEvery = 5 * time.Second
)

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
