package projector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

const (
	// maxSubjects bounds the subjects without a valid event that are kept in mind.
	maxSubjects = 1000
	// maxRetained bounds the messages of a subject that are looked at. A stream that keeps all has
	// more; one good message among the first decides.
	maxRetained = 1000
	// recheckAtOnce is how many listed subjects are gone over again at a poll, one question each.
	recheckAtOnce = 10
)

// subjects finds those of which every message that the stream still has was rejected: a rebuild
// would not know the state that the model has of them (API contract, rejection). It asks the
// stream after each rejection, so it needs no history of its own and is right after a restart; and
// goes over the listed ones again, since a subject may be purged. Subjects that the contract does not
// have (registry.x) are no such: they never had a state that could be lost, and no good event could
// take them off the list again. Their rejections are counted and copied like all others.
type subjects struct {
	status *status
	count  atomic.Int64 // of known

	mu    sync.Mutex
	known map[string]bool // false while being examined, true when found to have no valid event

	// Owned by the rejecter's run.
	rechecked time.Time
	upTo      string // the last one gone over
}

func newSubjects(s *status) *subjects { return &subjects{status: s, known: map[string]bool{}} }

// none says without waiting that there is nothing to clear.
func (s *subjects) none() bool { return s.count.Load() == 0 }

// clear takes note of a valid event on subject.
func (s *subjects) clear(subject string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	listed, ok := s.known[subject]
	if !ok {
		return
	}
	delete(s.known, subject)
	s.count.Add(-1)
	if listed {
		s.publish()
	}
}

// listed is sorted. s.mu is held.
func (s *subjects) listed() (listed []string) {
	for subject, is := range maps.All(s.known) {
		if is {
			listed = append(listed, subject)
		}
	}
	slices.Sort(listed)
	return listed
}

// publish shows the listed ones. s.mu is held.
func (s *subjects) publish() {
	listed := s.listed()
	s.status.update(func(p *Progress) { p.SubjectsWithoutValidEvent = listed })
}

// mark begins an examination. A valid event that arrives while it lasts takes the mark away, and
// with it the result.
func (s *subjects) mark(subject string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[subject]; !ok {
		if len(s.known) >= maxSubjects {
			return false
		}
		s.known[subject] = false
		s.count.Add(1)
	}
	return true
}

// list ends an examination that found no valid event.
func (s *subjects) list(subject string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if listed, ok := s.known[subject]; ok && !listed {
		s.known[subject] = true
		s.publish()
	}
}

// scan examines the subjects of the copies that earlier processes made.
func (s *subjects) scan(ctx context.Context, r *rejecter) error {
	sequences, err := copies(ctx, r)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, seq := range sequences {
		m, err := getMessage(ctx, r.cfg.Conn, r.cfg.Stream, seq, "")
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // newer ones have pushed it out
		}
		if err != nil {
			return fmt.Errorf("rejected event %d: %w", seq, err)
		}
		found[m.subject] = true
	}
	for subject := range maps.All(found) {
		s.examine(ctx, r, subject)
	}
	return nil
}

// copies lists the sequences of the rejected events of this stream that have copies.
func copies(ctx context.Context, r *rejecter) ([]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := r.js.Stream(ctx, events.RejectedStream)
	if err != nil {
		return nil, err
	}
	prefix := events.RejectedPrefix + token(r.epoch) + "."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, err
	}
	var sequences []uint64
	for subject := range maps.All(info.State.Subjects) {
		if seq, err := strconv.ParseUint(strings.TrimPrefix(subject, prefix), 10, 64); err == nil {
			sequences = append(sequences, seq)
		}
	}
	slices.Sort(sequences)
	return sequences, nil
}

// examineAll examines the subjects of a batch of rejected events.
func (s *subjects) examineAll(ctx context.Context, r *rejecter, batch []rejection) {
	seen := map[string]bool{}
	for _, x := range batch {
		if !seen[x.subject] {
			seen[x.subject] = true
			s.examine(ctx, r, x.subject)
		}
	}
}

// examine looks at what the stream still has of subject. When the stream does not answer the question
// is open, and the subject not listed: the next rejection or start asks again.
func (s *subjects) examine(ctx context.Context, r *rejecter, subject string) {
	if _, err := events.ParseSubject(subject); err != nil {
		return
	}
	if !s.mark(subject) {
		return
	}
	valid, err := hasValid(ctx, r, subject)
	if valid || err != nil {
		s.clear(subject)
		return
	}
	s.list(subject)
}

// hasValid reads the retained messages of subject until it finds a valid one. A subject without
// any message counts as valid: nothing of it was rejected.
func hasValid(ctx context.Context, r *rejecter, subject string) (bool, error) {
	d := decoder{renderer: readmodel.NewRenderer(), log: r.log}
	seq := uint64(1)
	for n := range maxRetained {
		m, err := getMessage(ctx, r.cfg.Conn, r.cfg.Stream, seq, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return n == 0, nil
		}
		if err != nil {
			return false, err
		}
		if _, err := d.one(&message{subject: m.subject, data: m.data, seq: m.seq}); err == nil {
			return true, nil
		}
		seq = m.seq + 1
	}
	return false, nil
}
