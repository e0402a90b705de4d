package projector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/projector/leader"
	"example.org/registry/projector/rejected"
	"example.org/registry/readmodel"
)

const (
	// maxSubjects bounds the subjects without a valid event that are remembered.
	maxSubjects = 1000

	// maxRetained bounds the messages of a subject that are looked at. A stream that keeps all has more; one good
	// message among the first decides.
	maxRetained = 1000

	// recheckAtOnce is how many listed subjects are looked at again in a poll, with one request each.
	recheckAtOnce = 10
)

// subjects finds the subjects whose every message that the stream still has was rejected: a rebuild would not know the
// state that the model has of them (events/CONTRACT.md#rejection).
//
// It asks the stream after each rejection, so it needs no history of its own and is right after a restart. It looks at
// the listed ones again and again, since a subject may be purged. Subjects that the contract does not have (registry.x)
// are not listed: they never had a state that could be lost, and no good event could take them off the list. Their
// rejections are counted and copied like all others.
type subjects struct {
	stream  leader.Stream
	tracker *tracker
	every   time.Duration // between two rechecks
	log     *slog.Logger
	count   atomic.Int64 // of known

	mu    sync.Mutex
	known map[string]string // what is shown of a subject without a valid event; "" while it is being examined

	// Owned by the rejecter's run.
	rechecked time.Time
	lastTurn  string // the last subject looked at again
}

func newSubjects(stream leader.Stream, t *tracker, every time.Duration, log *slog.Logger) *subjects {
	return &subjects{stream: stream, tracker: t, every: every, log: log, known: map[string]string{}}
}

// none says, without waiting, that there is nothing to clear.
func (s *subjects) none() bool { return s.count.Load() == 0 }

// clear takes subject off the list: it has a valid event, or no message at all.
func (s *subjects) clear(subject string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown, ok := s.known[subject]
	if !ok {
		return
	}
	delete(s.known, subject)
	s.count.Add(-1)
	if shown != "" {
		s.publish()
	}
}

// publish shows the list. s.mu is held.
func (s *subjects) publish() {
	var listed []string
	for _, shown := range s.known {
		if shown != "" {
			listed = append(listed, shown)
		}
	}
	slices.Sort(listed)
	s.tracker.update(func(p *Progress) { p.SubjectsWithoutValidEvent = listed })
}

// examineCopied examines the subjects of the stream's messages at sequences, which were rejected.
func (s *subjects) examineCopied(ctx context.Context, sequences []uint64) error {
	found := map[string]bool{}
	for _, seq := range sequences {
		m, err := s.stream.Message(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // newer ones have pushed it out
		}
		if err != nil {
			return fmt.Errorf("rejected event %d: %w", seq, err)
		}
		found[m.Subject] = true
	}
	for subject := range found {
		s.examine(ctx, subject)
	}
	return nil
}

// examineAll examines the subjects of a batch of rejected events.
func (s *subjects) examineAll(ctx context.Context, batch []rejected.Copy) {
	seen := map[string]bool{}
	for _, c := range batch {
		if !seen[c.Subject] {
			seen[c.Subject] = true
			s.examine(ctx, c.Subject)
		}
	}
}

// examine looks at what the stream still has of subject, and lists it when nothing of it is valid. When the stream does
// not answer, the question stays open and the subject is not listed: the next rejection or start asks again.
func (s *subjects) examine(ctx context.Context, subject string) {
	if _, err := events.ParseSubject(subject); err != nil {
		return
	}
	if !s.mark(subject) {
		return
	}
	valid, shown, err := s.hasValid(ctx, subject)
	if valid || err != nil {
		s.clear(subject)
		return
	}
	s.list(subject, shown)
}

// mark begins an examination. A valid event that arrives meanwhile removes the mark, and with it the result.
func (s *subjects) mark(subject string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[subject]; !ok {
		if len(s.known) >= maxSubjects {
			return false
		}
		s.known[subject] = ""
		s.count.Add(1)
	}
	return true
}

// list ends an examination that found no valid event.
func (s *subjects) list(subject, shown string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.known[subject]; ok && before == "" {
		s.known[subject] = shown
		s.publish()
	}
}

// hasValid reads the retained messages of subject until it finds a valid one. A subject without any message counts as
// valid: nothing of it was rejected. shown is what may be shown of the subject (events/CONTRACT.md#rejection).
func (s *subjects) hasValid(ctx context.Context, subject string) (valid bool, shown string, err error) {
	shown = subject
	d := decoder{renderer: readmodel.NewRenderer(), log: s.log}
	seq := uint64(1)
	for n := range maxRetained {
		m, err := s.stream.NextMessage(ctx, seq, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return n == 0, shown, nil
		}
		if err != nil {
			return false, "", err
		}
		if _, err := d.record(&m); err == nil {
			return true, "", nil
		}
		if masked := events.MaskSubject(subject, m.Data); masked != subject {
			shown = masked
		}
		seq = m.Sequence + 1
	}
	return false, shown, nil
}

// recheck looks at some of the listed subjects again, in turn: one that has been purged has nothing rejected any more,
// and a process that starts now would not list it.
func (s *subjects) recheck(ctx context.Context) {
	if s.none() || time.Since(s.rechecked) < s.every || s.tracker.status().Frozen {
		return
	}
	s.rechecked = time.Now()
	for subject, shown := range s.nextTurn() {
		_, err := s.stream.NextMessage(ctx, 1, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) && s.sameStream(ctx) {
			s.clear(subject)
			s.log.Info("subject without a valid event has been purged; it is not listed any more", "subject", shown)
		}
	}
}

// nextTurn returns the next few of the listed subjects, and what is shown of them.
func (s *subjects) nextTurn() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for subject, shown := range s.known {
		if shown != "" {
			all = append(all, subject)
		}
	}
	slices.Sort(all)
	from, found := slices.BinarySearch(all, s.lastTurn)
	if found {
		from++
	}
	if from >= len(all) {
		from = 0
	}
	part := map[string]string{}
	for _, subject := range all[from:min(from+recheckAtOnce, len(all))] {
		part[subject] = s.known[subject]
		s.lastTurn = subject
	}
	return part
}

// sameStream asks, after a message was not found, whether the answer was about the stream that the list is of: one that
// has taken its place, or that no leader vouches for, holds nothing and proves nothing.
func (s *subjects) sameStream(ctx context.Context) bool {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return false
	}
	at := s.tracker.read(time.Now())
	return leader.Compare(info, readmodel.Checkpoint{Sequence: at.Checkpoint, StreamIdentity: at.StreamIdentity}) == nil
}
