package recovery

import (
	"context"
	"maps"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// State is what one side has of a subject.
type State struct {
	Sequence uint64
	Data     events.Data
	Delisted readmodel.Tombstone // of a known Delisting: its time

	fromFile bool // a file of tombstones names it: Sequence is that of the file's stream
}

// Known is what a read model has, and where it stands.
type Known struct {
	At     readmodel.Checkpoint
	States map[events.Subject]State

	read map[events.Subject]State // as States was at At
	file map[events.Subject]readmodel.Tombstone
}

// Read reads a snapshot.
func Read(ctx context.Context, r *snapshots.Reader) (*Known, error) {
	k := &Known{At: r.Manifest.Checkpoint, States: map[events.Subject]State{}}
	err := r.EachState(ctx, func(s snapshots.State) {
		k.States[s.Subject] = State{Sequence: s.Sequence, Data: s.Data, Delisted: s.Tombstone}
	})
	k.read = k.States
	return k, err
}

// Withdrawals is what registry tombstones wrote: everything that no list may show, at a checkpoint.
type Withdrawals struct {
	All      []readmodel.Tombstone
	History  string
	Sequence uint64
}

// Add brings k up to date with w. Within one history sequences decide. Between two nothing tells
// which is newer, so that all of w counts.
func (k *Known) Add(w Withdrawals) {
	k.States = maps.Clone(k.read)
	k.file = make(map[events.Subject]readmodel.Tombstone, len(w.All))
	ours := w.History == k.At.HistoryName()
	for _, t := range w.All {
		subject := t.Subject()
		k.file[subject] = t
		s, ok := k.read[subject]
		if ok && ours && s.Sequence >= t.Sequence {
			continue
		}
		if safety(s.Data) == 0 {
			e, known := s.Data.(events.Entry)
			if e.Verified = false; known && t.Hidden {
				s.Data = e
			} else {
				s.Data = events.Delisting{List: t.List, EntryID: t.EntryID}
			}
		}
		k.States[subject] = State{t.Sequence, s.Data, t, true}
	}
	if !ours || w.Sequence < k.At.Sequence {
		return
	}
	for subject, s := range k.States {
		if _, named := k.file[subject]; safety(s.Data) > 0 && subject.Kind == events.KindEntry && !named {
			delete(k.States, subject) // it was listed again after the snapshot, and how is not known
		}
	}
}

// safety ranks a state where it is not known which is newer: the safer one harms nobody.
func safety(d events.Data) int {
	switch d := d.(type) {
	case events.Delisting, events.DonationRemoval:
		return 2
	case events.Entry:
		if d.List.Trusted() && !d.Verified {
			return 1
		}
	}
	return 0
}

// equal reports whether two states are the same.
func equal(a, b events.Data) bool {
	return string(events.AppendData(nil, a)) == string(events.AppendData(nil, b))
}
