package events_test

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// Of two states of a subject the one with the greater revision is the latest, then a removal, then the
// greater SHA-256 of the data as Encode writes it (events/CONTRACT.md#revisions).
func TestCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		revision := rapid.Int64Range(1, 2)
		state := rapid.Custom(func(t *rapid.T) events.Data {
			e := eventstest.Entries(1, 1)[0]
			e.Name, e.Revision = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name"), revision.Draw(t, "revision")
			if rapid.IntRange(0, 3).Draw(t, "removed") == 0 {
				return events.Delisting{List: e.List, EntryID: e.EntryID, Revision: e.Revision}
			}
			return e
		})
		a, b := state.Draw(t, "a"), state.Draw(t, "b")

		greater := 0
		hashA, hashB := sha256.Sum256(events.AppendData(nil, a)), sha256.Sum256(events.AppendData(nil, b))
		switch {
		case events.Revision(a) > events.Revision(b):
			greater = 1
		case events.Revision(a) < events.Revision(b):
			greater = -1
		case a == b:
		case events.IsRemoval(a):
			greater = 1
		case events.IsRemoval(b):
			greater = -1
		default:
			greater = bytes.Compare(hashA[:], hashB[:])
		}

		if got := events.Compare(a, b); got != greater {
			t.Fatalf("%+v and %+v: %d, want %d", a, b, got, greater)
		}
	})
}
