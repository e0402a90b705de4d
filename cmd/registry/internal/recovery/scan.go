package recovery

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// Scanned is what a stream has.
type Scanned struct {
	Identity readmodel.StreamIdentity // its History is the last one that a marker began
	Follows  string                   // the history before that one; empty if there is no marker, or none that can be read
	States   map[events.Subject]Streamed
}

// Streamed is what a stream has of a subject.
type Streamed struct {
	State           // of its last valid message; Data is nil where it has none
	Time  time.Time // when the broker stored that
	Last  uint64    // sequence of the last message, valid or not
}

// silence is how long the broker may send nothing before a scan gives up.
const silence = 15 * time.Second

// Scan reads the stream from its start to the end that it has now, and calls each, if not nil, with
// every message. It needs what a replica may do.
func Scan(ctx context.Context, s leader.Stream, each func(leader.Message)) (*Scanned, error) {
	info, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	found := &Scanned{Identity: lineage.Of(info), States: map[events.Subject]Streamed{}}
	if info.State.Msgs == 0 {
		return found, nil
	}
	at, stopped := uint64(0), 0
	for {
		before := at
		whole, err := found.read(ctx, s, &at, info.State.LastSeq, each)
		if err != nil {
			return nil, err
		}
		if whole {
			return found, nil
		}
		if at > before {
			stopped = 0
		}
		if stopped++; stopped > restarts {
			return nil, fmt.Errorf("the stream %s could not be read beyond %d: the broker leaves out messages", s.Name, at)
		}
	}
}

// restarts is how often in a row reading begins again without a message.
const restarts = 3

// read reads the messages after at, up to end, and advances at. It returns whole == false if a
// delivery was lost, which happens when the connection breaks or cannot keep up: this consumer does
// not deliver a message twice.
func (s *Scanned) read(ctx context.Context, from leader.Stream, at *uint64, end uint64, each func(leader.Message)) (whole bool, err error) {
	consumer, err := from.JS.CreateConsumer(ctx, from.Name, jetstream.ConsumerConfig{
		Description: "registry recover", DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: *at + 1, AckPolicy: jetstream.AckNonePolicy,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return false, fmt.Errorf("consumer: %w", natserr.Explain(from.JS.Conn(), err, jetstream.DefaultAPIPrefix+"CONSUMER.CREATE."+from.Name))
	}
	defer func() {
		forget, cancel := context.WithTimeout(context.WithoutCancel(ctx), leader.RequestTimeout)
		defer cancel()
		_ = from.JS.DeleteConsumer(forget, from.Name, consumer.CachedInfo().Name) // or the broker forgets it in a minute
	}()
	if consumer.CachedInfo().NumPending == 0 {
		return true, nil // the rest was erased meanwhile
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(2000, 8<<20))
	if err != nil {
		return false, fmt.Errorf("consumer: %w", err)
	}
	defer messages.Stop()
	for delivered := uint64(0); *at < end; {
		wait, cancel := context.WithTimeout(ctx, silence)
		m, err := messages.Next(jetstream.NextContext(wait))
		cancel()
		if err != nil {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			return false, fmt.Errorf("the stream %s could not be read beyond %d: %w", from.Name, *at, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return false, err
		}
		if delivered++; meta.Sequence.Consumer != delivered {
			return false, nil
		}
		*at = meta.Sequence.Stream
		one := leader.Message{Subject: m.Subject(), Sequence: *at, ID: m.Headers().Get(jetstream.MsgIDHeader), Time: meta.Timestamp, Data: m.Data()}
		s.add(one)
		if each != nil {
			each(one)
		}
		if meta.NumPending == 0 {
			break // the last messages may be erased
		}
	}
	return true, nil
}

func (s *Scanned) add(m leader.Message) {
	if m.Subject == events.HistorySubject {
		s.Follows = ""
		if h, err := events.DecodeHistory(m.Data); err == nil {
			s.Identity.History, s.Follows = h.Name, h.Previous
		}
		return
	}
	subject, err := events.ParseSubject(m.Subject)
	if err != nil {
		return
	}
	is := s.States[subject]
	is.Last = m.Sequence
	if e, err := events.DecodeMessage(m.Subject, m.Data); err == nil {
		is.State, is.Time = State{Sequence: m.Sequence, Data: e.Data}, m.Time
		if d, ok := e.Data.(events.Delisting); ok {
			is.Delisted = readmodel.Tombstone{List: d.List, EntryID: d.EntryID, Sequence: m.Sequence, Time: m.Time}
			if e.Source == events.ExportSource && !e.Time.IsZero() {
				is.Delisted.Time = e.Time
			}
		}
	}
	s.States[subject] = is
}
