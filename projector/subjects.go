package projector

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/pause"
	"example.org/registry/projector/lineage"
	"example.org/registry/projector/rejected"
	"example.org/registry/readmodel"
)

const (
	// maxSubjects bounds the list of subjects without a valid event.
	maxSubjects = 1000

	// maxRetained bounds the messages that are read of a subject. A stream that keeps all has more;
	// one valid message among the first decides.
	maxRetained = 1000

	// recheckAtOnce is how many listed subjects are checked again in a poll, with one request each.
	recheckAtOnce = 10

	// maxOpen bounds the subjects that wait to be examined. There are no more copies than that: the
	// stream of rejected events keeps as many.
	maxOpen = 10_000

	// stepItems is how many subjects are examined, and how many copies looked up, in one step.
	stepItems = 256
)

// subjects finds the subjects whose retained messages were all rejected: a rebuild would not know
// the state that the model has of them (events/CONTRACT.md#rejection).
//
// It queries the stream after each rejection, so it needs no history of its own; after a restart it
// starts from the copies that earlier processes made. It keeps checking the listed subjects, since
// a subject may be purged. A request without a reply is repeated, and the work continues where the
// replies ended; nothing waits for it. Subjects outside the contract (registry.x) are not listed:
// they never had a state that could be lost, and no valid event could take them off the list. Their
// rejections are counted and copied like all others.
type subjects struct {
	stream  leader.Stream
	tracker *tracker
	every   time.Duration // between two rechecks
	retry   time.Duration // after a request that failed
	log     *slog.Logger
	count   atomic.Int64  // of known
	wake    chan struct{} // to run: an examination is pending; holds one

	// rejected is called with the subject of every rejected event, those that earlier processes
	// rejected included.
	rejected func(subject string)

	mu    sync.Mutex
	known map[string]string       // what is shown of a subject without a valid event; "" while it is being examined
	open  map[string]*examination // pending, not in progress
	seen  map[string]bool         // subjects of earlier rejections, until all of those have been looked up

	// Owned by run.
	found     bool     // unread has been filled
	unread    []uint64 // events that earlier processes rejected and whose subjects are not known yet
	failing   bool     // the last step got no reply
	rechecked time.Time
	lastTurn  string // the last subject checked again
}

// examination is the progress of checking the retained messages of a subject: everything before
// next was rejected.
type examination struct {
	subject, shown string // shown is the part of the subject that may be shown (events/CONTRACT.md#rejection)
	next           uint64
	rejected       int
}

func newSubjects(cfg Config, stream leader.Stream, t *tracker, log *slog.Logger) *subjects {
	return &subjects{
		stream: stream, tracker: t, every: cfg.PollEvery, retry: cfg.RetryEvery, log: log, wake: make(chan struct{}, 1),
		known: map[string]string{}, open: map[string]*examination{},
	}
}

// none reports, without waiting, that the list is empty.
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

// publish publishes the list. The caller must hold s.mu.
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

// run examines pending subjects until ctx ends. It starts with the copies that earlier processes
// made of this epoch's events.
func (s *subjects) run(ctx context.Context, epoch string) {
	for ctx.Err() == nil {
		began := time.Now()
		err := s.step(ctx, epoch)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !s.failing {
			s.log.Warn("the subjects of rejected events cannot be read; retrying", "error", err)
		}
		s.failing = err != nil
		if err != nil {
			pause.For(ctx, s.retry-time.Since(began)) // a request that timed out was wait enough
			continue
		}
		s.idle(ctx)
	}
}

// step examines some pending subjects, looks up some of the earlier rejections, and checks listed
// subjects again. Requests without a reply stay pending. While frozen it does nothing, since the
// stream is another one.
func (s *subjects) step(ctx context.Context, epoch string) error {
	if s.tracker.status().Frozen {
		return nil
	}
	_, failed, err := each(s.dequeue(), func(e *examination) error { return s.examine(ctx, e) })
	s.requeue(failed)
	if !s.found {
		unread, listErr := rejected.Sequences(ctx, s.stream.JS, epoch)
		s.found = listErr == nil
		s.unread, err = unread, cmp.Or(err, listErr)
		s.seen = map[string]bool{}
	}
	part := s.unread[:min(len(s.unread), stepItems)]
	_, unread, lookErr := each(part, func(seq uint64) error { return s.lookUp(ctx, seq) })
	if s.unread = append(s.unread[len(part):], unread...); len(s.unread) == 0 {
		s.seen = nil
	}
	s.recheck(ctx)
	return cmp.Or(err, lookErr)
}

// idle waits for work.
func (s *subjects) idle(ctx context.Context) {
	frozen := s.tracker.status().Frozen
	s.mu.Lock()
	some := len(s.open) > 0 || len(s.unread) > 0
	s.mu.Unlock()
	if some && !frozen {
		return
	}
	var poll <-chan time.Time
	if frozen || !s.none() {
		timer := time.NewTimer(s.every)
		defer timer.Stop()
		poll = timer.C
	}
	wake := s.wake
	if frozen {
		wake = nil
	}
	select {
	case <-wake:
	case <-poll:
	case <-ctx.Done():
	}
}

// lookUp schedules an examination of the subject of the rejected message at seq. One examination is
// enough for all messages of a subject.
func (s *subjects) lookUp(ctx context.Context, seq uint64) error {
	m, err := s.stream.Message(ctx, seq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil // displaced by newer messages
	case err != nil:
		return err
	}
	s.mu.Lock()
	seen := s.seen[m.Subject]
	s.seen[m.Subject] = true
	s.mu.Unlock()
	if !seen {
		s.add(m.Subject)
	}
	return nil
}

// examineAll schedules examinations of the subjects of rejected events. It does not wait. Any
// goroutine may call it.
func (s *subjects) examineAll(batch []rejected.Copy) {
	for _, c := range batch {
		s.add(c.Subject)
	}
}

// add schedules an examination of a subject, from its first retained message on.
func (s *subjects) add(subject string) {
	if _, err := events.ParseSubject(subject); err != nil {
		return
	}
	if s.rejected != nil {
		s.rejected(subject)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxOpen {
		return
	}
	s.open[subject] = &examination{subject: subject, shown: subject, next: 1}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// dequeue returns some pending examinations. A subject added while it is examined is pending again:
// the valid message found may have been displaced since.
func (s *subjects) dequeue() (some []*examination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for subject, e := range s.open {
		if len(some) == stepItems {
			break
		}
		some = append(some, e)
		delete(s.open, subject)
	}
	return some
}

// requeue makes examinations from dequeue pending again, unless there is a newer examination of the
// subject.
func (s *subjects) requeue(some []*examination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range some {
		if s.open[e.subject] == nil {
			s.open[e.subject] = e
		}
	}
}

// errOtherStream means that a reply may be about another stream than the list.
var errOtherStream = errors.New("the stream may be another one")

// examine reads the retained messages of a subject, and lists the subject if none of them is valid.
// On an error the result is unknown, and the list does not change.
func (s *subjects) examine(ctx context.Context, e *examination) error {
	if !s.begin(e.subject) {
		return nil
	}
	valid, err := s.hasValid(ctx, e)
	switch {
	case err == nil && valid:
		s.clear(e.subject)
	case err == nil && s.sameStream(ctx):
		s.list(e.subject, e.shown)
	default:
		s.abandon(e.subject)
		return cmp.Or(err, errOtherStream)
	}
	return nil
}

// begin begins an examination. A valid event that arrives during it removes the subject from known,
// and so discards the result. It returns false if too many subjects are known.
func (s *subjects) begin(subject string) bool {
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

// abandon ends an examination without a result.
func (s *subjects) abandon(subject string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shown, ok := s.known[subject]; ok && shown == "" {
		delete(s.known, subject)
		s.count.Add(-1)
	}
}

// hasValid reads the retained messages of e's subject, continuing where e is, until it finds a
// valid one. A subject without any message counts as valid: none of its messages was rejected.
func (s *subjects) hasValid(ctx context.Context, e *examination) (bool, error) {
	d := decoder{renderer: readmodel.NewRenderer(), log: s.log}
	for ; e.rejected < maxRetained; e.rejected++ {
		m, err := s.stream.NextMessage(ctx, e.next, e.subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return e.rejected == 0, nil
		}
		if err != nil {
			return false, err
		}
		if _, err := d.record(&m); err == nil {
			return true, nil
		}
		if masked := events.MaskSubject(e.subject, m.Data); masked != e.subject {
			e.shown = masked
		}
		e.next = m.Sequence + 1
	}
	return false, nil
}

// recheck checks some of the listed subjects again, in turn. A purged subject has no rejected
// message any more, and a process that starts now would not list it.
func (s *subjects) recheck(ctx context.Context) {
	if s.none() || time.Since(s.rechecked) < s.every || s.tracker.status().Frozen {
		return
	}
	s.rechecked = time.Now()
	turn := s.nextTurn()
	_, _, _ = each(slices.Collect(maps.Keys(turn)), func(subject string) error { // a subject without a reply is checked again later
		_, err := s.stream.NextMessage(ctx, 1, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) && s.sameStream(ctx) {
			s.clear(subject)
			s.log.Info("subject without a valid event has been purged; it is not listed any more", "subject", turn[subject])
		}
		return err
	})
}

// nextTurn returns the next few listed subjects, and their shown parts.
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

// sameStream checks, after a message was not found, whether the reply was about the right stream. A
// stream that has replaced it, or one that no leader vouches for, proves nothing.
func (s *subjects) sameStream(ctx context.Context) bool {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return false
	}
	at := s.tracker.read(time.Now())
	return lineage.Compare(info, readmodel.Checkpoint{Sequence: at.Checkpoint, StreamIdentity: at.StreamIdentity}) == nil
}
