package recovery

import (
	"context"

	"example.org/registry/events"
	"example.org/registry/events/leader"
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
	readmodel.State        // the greatest of its messages; Data is nil where none is valid
	Last            uint64 // sequence of the last message, valid or not
}

// Scan reads the stream from its start to the end that it has now, and calls each, if not nil, with
// every message. It needs what a replica may do.
func Scan(ctx context.Context, s leader.Stream, each func(leader.Message)) (*Scanned, error) {
	info, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	found := &Scanned{Identity: lineage.Of(info), States: map[events.Subject]Streamed{}}
	return found, s.ReadAll(ctx, "registry recover", func(m leader.Message) {
		found.add(m)
		if each != nil {
			each(m)
		}
	})
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
	if e, err := m.Event(); err == nil && (is.Data == nil || events.Compare(e.Data, is.Data) >= 0) {
		is.State = readmodel.State{Sequence: m.Sequence, Data: e.Data}
	}
	s.States[subject] = is
}
