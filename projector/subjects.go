package projector

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxSubjects bounds the subjects without a valid event that are kept in mind.
const maxSubjects = 1000

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
