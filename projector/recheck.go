package projector

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/readmodel"
)

// recheckAtOnce is how many listed subjects are gone over again at a poll, one question each.
const recheckAtOnce = 10

// recheck goes over some of the listed subjects, in turn, at most every PollEvery: one that has been
// purged has nothing rejected any more, and a process that starts now would not list it.
func (s *subjects) recheck(ctx context.Context, r *rejecter) {
	if s.none() || time.Since(s.rechecked) < r.cfg.PollEvery || s.status.read(time.Now()).Frozen {
		return
	}
	s.rechecked = time.Now()
	for _, subject := range s.turn() {
		_, err := getMessage(ctx, r.cfg.Conn, r.cfg.Stream, 1, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) && s.ours(ctx, r) {
			s.clear(subject)
			r.log.Info("subject without a valid event has been purged; it is not listed any more", "subject", subject)
		}
	}
}

// turn is the next few of the listed subjects.
func (s *subjects) turn() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.listed()
	from, found := slices.BinarySearch(all, s.upTo)
	if found {
		from++
	}
	if from >= len(all) {
		from = 0
	}
	part := all[from:min(from+recheckAtOnce, len(all))]
	if len(part) > 0 {
		s.upTo = part[len(part)-1]
	}
	return part
}

// ours asks, after a message was not found, whether the answer was about the stream that the list
// is of: one that has taken its place, or that no leader vouches for, holds nothing and proves nothing.
func (s *subjects) ours(ctx context.Context, r *rejecter) bool {
	info, err := StreamInfo(ctx, r.js, r.cfg.Stream)
	if err != nil {
		return false
	}
	at := s.status.read(time.Now())
	return compare(info, readmodel.Checkpoint{
		Sequence: at.Checkpoint, Stream: readmodel.StreamIdentity{Epoch: at.Epoch}}) == nil
}
