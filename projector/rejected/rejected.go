// Package rejected manages the copies of rejected events, a dead-letter stream: how a copy is stored, and how an operator
// sees, retries and purges copies. The projector makes them; events/CONTRACT.md#rejection is the
// contract.
//
// # Promises
//
//   - A copy has one form, written and read in this package alone.
//   - Retry never restores an older state than the subject has.
//   - Purge deletes copies, never events.
//
// Strangers wrote the content of a copy: its texts may hold anything.
package rejected

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/projector/lineage"
)

// longRequest bounds requests about every copy, which take the broker longer than others.
const longRequest = 5 * leader.RequestTimeout

// Copy is the copy of one rejected event.
type Copy struct {
	Epoch     string    // of the event's stream, as in the copy's subject
	Sequence  uint64    // of the event in its stream
	Subject   string    // of the event
	Reason    string    // one line, at most 200 bytes
	Time      time.Time // when the broker stored the event, or the copy if the copy lacks that time
	Payload   []byte
	Truncated bool   // Payload was shortened
	MessageID string // of the event's message, or "" if it had none or a bad one
}

// prefix returns the beginning of the subjects of all copies of one stream's events. It changes an
// epoch that a subject cannot hold; the epochs that this program makes stay as they are.
func prefix(epoch string) string { return events.RejectedPrefix + token(epoch) + "." }

// token turns an epoch into one token of a subject.
func token(epoch string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z', r == '-', r == '_':
			return r
		}
		return '_'
	}, epoch)
}

func (c Copy) subject() string { return prefix(c.Epoch) + strconv.FormatUint(c.Sequence, 10) }

// Message returns the copy as it is stored. It has no message id: the stream keeps one message a
// subject, so storing the same copy again adds nothing, even after the duplicate window.
func (c Copy) Message() *nats.Msg {
	m := &nats.Msg{
		Subject: c.subject(),
		Header: nats.Header{
			events.HeaderReason:   {c.Reason},
			events.HeaderSequence: {strconv.FormatUint(c.Sequence, 10)},
			events.HeaderSubject:  {c.Subject},
			events.HeaderTime:     {c.Time.UTC().Format(time.RFC3339Nano)},
		},
		Data: c.Payload,
	}
	if c.MessageID != "" {
		m.Header.Set(events.HeaderMessageID, c.MessageID)
	}
	if c.Truncated {
		m.Header.Set(events.HeaderTruncated, "1")
	}
	return m
}

// parse reads a message of the stream of copies, which the broker stored at the time stored. It
// returns false for a message that no projector made. The copy shares the payload's memory.
func parse(subject string, header nats.Header, payload []byte, stored time.Time) (Copy, bool) {
	epoch, number, found := strings.Cut(strings.TrimPrefix(subject, events.RejectedPrefix), ".")
	seq, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil {
		return Copy{}, false
	}
	c := Copy{
		Epoch: epoch, Sequence: seq, Subject: header.Get(events.HeaderSubject), Reason: header.Get(events.HeaderReason),
		Time: stored, Payload: payload, Truncated: header.Get(events.HeaderTruncated) != "",
		MessageID: header.Get(events.HeaderMessageID),
	}
	if t, err := time.Parse(time.RFC3339Nano, header.Get(events.HeaderTime)); err == nil {
		c.Time = t
	}
	return c, true
}

// Last returns at most limit of the latest copies, of any stream's events, the highest sequence
// first. After an error it returns what it has read.
func Last(ctx context.Context, js jetstream.JetStream, limit int) (copies []Copy, err error) {
	stream, err := openCopies(ctx, js)
	if err != nil || stream == nil {
		return nil, err
	}
	// Copies that were made again, purged or have expired leave gaps, so it reads three sequences
	// for each copy wanted.
	state := stream.CachedInfo().State
	end := max(state.FirstSeq, 1, state.LastSeq-min(state.LastSeq, uint64(3*limit)-1))
	for seq := state.LastSeq; seq >= end && len(copies) < limit; seq-- {
		m, err := copiesOf(js).Message(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return copies, err
		}
		if c, ok := parse(m.Subject, m.Header, m.Data, m.Time); ok {
			copies = append(copies, c)
		}
	}
	// Copies are made concurrently.
	slices.SortFunc(copies, func(a, b Copy) int { return cmp.Compare(b.Sequence, a.Sequence) })
	return copies, nil
}

// copiesOf returns the stream of copies from its leader: a replica that lags lacks the latest
// copies.
func copiesOf(js jetstream.JetStream) leader.Stream {
	return leader.Stream{JS: js, Name: events.RejectedStream}
}

// openCopies returns the stream of copies, or nil if there is none.
func openCopies(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, leader.RequestTimeout)
	defer cancel()
	stream, err := js.Stream(ctx, events.RejectedStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return stream, err
}

// Events are the rejected events of a broker, for an operator who manages one stream. One goroutine
// at a time may use it.
type Events struct {
	js        jetstream.JetStream
	stream    string   // of the events
	histories []string // of the stream, the newest first, as in the copies' subjects
}

// Open returns the Events of an operator who manages stream.
func Open(ctx context.Context, js jetstream.JetStream, stream string) (*Events, error) {
	ctx, cancel := context.WithTimeout(ctx, leader.RequestTimeout)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", stream, natserr.Explain(js.Conn(), err, ""))
	}
	marker, _, err := lineage.Newest(ctx, leader.Stream{JS: js, Name: stream}, math.MaxUint64)
	if err != nil {
		return nil, natserr.Explain(js.Conn(), err, "")
	}
	e := &Events{js: js, stream: stream}
	for _, name := range marker.Names(lineage.Of(s.CachedInfo())) {
		e.histories = append(e.histories, token(name))
	}
	return e, nil
}

// explain names the right that is missing, or the silence.
func (e *Events) explain(err error) error { return natserr.Explain(e.js.Conn(), err, "") }

// List returns the copies that Retry finds, by sequence, and all others: of other streams, and of a
// sequence that a newer history has again.
func (e *Events) List(ctx context.Context) (copies, others []Copy, err error) {
	defer func() { err = e.explain(err) }()
	var all []Copy
	err = copiesOf(e.js).ReadAfter(ctx, "registry rejected", 0, func(m leader.Message) {
		if c, ok := parse(m.Subject, m.Header, m.Data, m.Time); ok {
			all = append(all, c)
		}
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the rejected events: %w", err)
	}
	slices.SortFunc(all, func(a, b Copy) int {
		return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(slices.Index(e.histories, a.Epoch), slices.Index(e.histories, b.Epoch)))
	})
	for _, c := range all {
		has := len(copies) > 0 && copies[len(copies)-1].Sequence == c.Sequence
		if has || !slices.Contains(e.histories, c.Epoch) {
			others = append(others, c)
		} else {
			copies = append(copies, c)
		}
	}
	return copies, others, nil
}

// Retry publishes the event that was rejected at seq again, with a new message id, if it is true against
// all that the stream has on its subject. Of an event that this version cannot read that is not known,
// so it must still be the last. Retry returns the event's new sequence.
func (e *Events) Retry(ctx context.Context, seq uint64) (_ uint64, err error) {
	defer func() { err = e.explain(err) }()
	c, err := e.find(ctx, seq)
	if err != nil {
		return 0, err
	}
	if c.Truncated {
		return 0, errors.New("the copy was cut at 64 KiB, so the event cannot be published from it; its publisher has to")
	}
	last := seq
	if event, err := events.DecodeMessage(c.Subject, c.Payload); err == nil {
		if last, err = e.wins(ctx, c, event.Data); err != nil {
			return 0, err
		}
	}
	sequence, err := leader.Stream{JS: e.js, Name: e.stream}.PublishAfter(ctx, c.Subject, c.Payload, events.NewEventID(), last)
	if natserr.IsConflict(err) {
		return 0, fmt.Errorf("%s has something newer, or the event is no longer there; not published, so that no older state comes back", c.Subject)
	}
	return sequence, err
}

// wins returns the sequence of the last message on c's subject, 0 for none, or an error if a message
// other than c's own has a state that is true against d.
func (e *Events) wins(ctx context.Context, c Copy, d events.Data) (last uint64, err error) {
	stream := leader.Stream{JS: e.js, Name: e.stream}
	for {
		m, err := stream.NextMessage(ctx, last+1, c.Subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		last = m.Sequence
		known, err := m.Event()
		if err == nil && m.Sequence != c.Sequence && events.Compare(d, known.Data) <= 0 {
			return 0, fmt.Errorf("revision %d of it does not win against revision %d, which %s has at sequence %d; not published",
				events.Revision(d), events.Revision(known.Data), c.Subject, m.Sequence)
		}
	}
}

// find returns the copy of the stream's event at seq.
func (e *Events) find(ctx context.Context, seq uint64) (Copy, error) {
	missing := errors.New("no rejected event of this stream has this sequence")
	stream, err := openCopies(ctx, e.js)
	if err != nil {
		return Copy{}, err
	}
	if stream == nil {
		return Copy{}, missing
	}
	for _, name := range e.histories {
		m, err := copiesOf(e.js).LastMessage(ctx, Copy{Epoch: name, Sequence: seq}.subject())
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return Copy{}, err
		}
		c, _ := parse(m.Subject, m.Header, bytes.Clone(m.Data), m.Time) // true: its subject was requested
		return c, nil
	}
	return Copy{}, missing
}

// Purge deletes the copies under subject, or those of events that were published on subject, and
// returns their number. The subject may have wildcards (CheckPattern). The events stay in their
// stream, and a replay copies them again.
func (e *Events) Purge(ctx context.Context, subject string) (n uint64, err error) {
	defer func() { err = e.explain(err) }()
	stream, err := openCopies(ctx, e.js)
	if err != nil || stream == nil {
		return 0, err
	}
	if strings.HasPrefix(subject, events.RejectedPrefix) {
		return purge(ctx, stream, subject)
	}
	copies, others, err := e.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, c := range slices.Concat(copies, others) {
		if !matches(c.Subject, subject) {
			continue
		}
		erased, err := purge(ctx, stream, c.subject())
		if err != nil {
			return n, err
		}
		n += erased
	}
	return n, nil
}

// purge counts and deletes the copies under a subject, which may have wildcards.
func purge(ctx context.Context, stream jetstream.Stream, subject string) (n uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, longRequest)
	defer cancel()
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, err
	}
	for count := range maps.Values(info.State.Subjects) {
		n += count
	}
	return n, stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
}

// CheckPattern returns an error for an invalid subject with wildcards: * stands for one token, > at
// the end for one or more.
func CheckPattern(pattern string) error {
	tokens := strings.Split(pattern, ".")
	for i, token := range tokens {
		switch {
		case token == "" || strings.ContainsAny(token, " \t\r\n"):
			return errors.New("a subject must not have empty parts or spaces")
		case token == ">" && i < len(tokens)-1:
			return errors.New("> must be the last part")
		case token != "*" && token != ">" && strings.ContainsAny(token, "*>"):
			return errors.New("* and > stand for whole parts between dots: write registry.scammers.* for all of a list")
		}
	}
	return nil
}

// matches reports whether a subject matches a pattern that CheckPattern accepts.
func matches(subject, pattern string) bool {
	for subject != "" && pattern != "" {
		if pattern == ">" {
			return true
		}
		var is, want string
		is, subject, _ = strings.Cut(subject, ".")
		want, pattern, _ = strings.Cut(pattern, ".")
		if want != "*" && want != is {
			return false
		}
	}
	return subject == pattern // both at their end
}
