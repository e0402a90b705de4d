package recovery

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/readmodel"
)

// Wins returns the states of one side that win against the other's, by subject, and counts those
// that lose. other returns nil where the other side knows nothing.
func Wins(side iter.Seq[readmodel.State], other func(events.Subject) events.Data) (wins []readmodel.State, losing int) {
	for s := range side {
		order := 1
		if has := other(s.Data.Subject()); has != nil {
			order = events.Compare(s.Data, has)
		}
		if order > 0 {
			wins = append(wins, s)
		} else if order < 0 {
			losing++
		}
	}
	readmodel.SortStates(wins)
	return wins, losing
}

// States are the true states of a side, by subject.
type States map[events.Subject]readmodel.State

// Add adds what one more source knows.
func (all States) Add(s readmodel.State) {
	subject := s.Data.Subject()
	if is, ok := all[subject]; !ok || events.Compare(s.Data, is.Data) >= 0 {
		all[subject] = s
	}
}

// Data returns the state of a subject, or nil.
func (all States) Data(k events.Subject) events.Data { return all[k].Data }

// String returns how many entries the lists show, and three of their names.
func (all States) String() string {
	counts, shown := map[events.List]int{}, []events.Entry{}
	for _, s := range all {
		if e, ok := s.Data.(events.Entry); ok && Withdrawal(e) == nil {
			counts[e.List]++
			shown = append(shown, e)
		}
	}
	slices.SortFunc(shown, func(a, b events.Entry) int { return strings.Compare(a.Subject().String(), b.Subject().String()) })
	var names []string
	for _, e := range shown[:min(3, len(shown))] {
		names = append(names, fmt.Sprintf("%.64q", e.Name))
	}
	text := fmt.Sprintf("scammers %d, servers %d, legit %d", counts[events.Scammers], counts[events.Servers], counts[events.Legit])
	if len(names) > 0 {
		text += " (" + strings.Join(names, ", ") + ")"
	}
	return text
}

// Scanned has the content of a stream.
type Scanned struct {
	States States                    // of each subject with a valid event
	Last   map[events.Subject]uint64 // sequence of the last message, valid or not
}

// Scan reads what the stream has of some subjects, up to the end that it has now. It needs what a
// replica may do.
func Scan(ctx context.Context, s leader.Stream, of func(events.Subject) bool) (*Scanned, error) {
	found := &Scanned{States{}, map[events.Subject]uint64{}}
	return found, s.ReadAfter(ctx, "registry recover", 0, func(m leader.Message) {
		subject, err := events.ParseSubject(m.Subject)
		if err != nil || !of(subject) {
			return
		}
		found.Last[subject] = m.Sequence
		if e, err := m.Event(); err == nil {
			found.States.Add(readmodel.State{Sequence: m.Sequence, Data: e.Data})
		}
	})
}
