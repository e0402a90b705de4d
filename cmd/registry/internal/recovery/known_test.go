package recovery

import (
	"testing"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// Beside a snapshot, a file of tombstones decides by sequence within one history, and wins between
// two; no clock is asked.
func TestAddWithdrawals(t *testing.T) {
	entry := func(id string, verified bool) events.Entry {
		return events.Entry{List: events.Legit, EntryID: id, Verified: verified}
	}
	read := map[events.Subject]State{}
	for id, s := range map[string]State{
		"listed":      {Sequence: 10, Data: entry("listed", true)},
		"delisted":    {Sequence: 20, Data: entry("delisted", true)},
		"again":       {Sequence: 50, Data: entry("again", true)}, // after the tombstone of the file
		"listed-late": {Sequence: 30, Data: events.Delisting{List: events.Legit, EntryID: "listed-late"}},
		"hidden":      {Sequence: 40, Data: entry("hidden", false)},
		"withdrawn":   {Sequence: 25, Data: entry("withdrawn", true)},
	} {
		read[events.Subject{Kind: events.KindEntry, List: events.Legit, ID: id}] = s
	}
	stone := func(id string, sequence uint64) readmodel.Tombstone {
		return readmodel.Tombstone{List: events.Legit, EntryID: id, Sequence: sequence}
	}
	hidden := func(id string, sequence uint64) readmodel.Tombstone {
		t := stone(id, sequence)
		t.Hidden = true
		return t
	}
	w := Withdrawals{History: "E", Sequence: 100, All: []readmodel.Tombstone{
		stone("delisted", 70), stone("again", 45), hidden("hidden", 40), hidden("withdrawn", 75), hidden("unknown", 76), stone("new", 80)}}
	for history, want := range map[string]map[string]int{
		"E": {"listed": 0, "delisted": 2, "again": 0, "hidden": 1, "withdrawn": 1, "unknown": 2, "new": 2, "listed-late": -1},
		"F": {"listed": 0, "delisted": 2, "again": 2, "hidden": 1, "withdrawn": 1, "unknown": 2, "new": 2, "listed-late": 2},
	} {
		k := &Known{At: readmodel.Checkpoint{Sequence: 60}, read: read}
		k.At.StreamEpoch = "E"
		w.History = history
		k.Add(w)
		for id, safe := range want {
			s, ok := k.States[events.Subject{Kind: events.KindEntry, List: events.Legit, ID: id}]
			if got := safety(s.Data); ok != (safe >= 0) || ok && got != safe {
				t.Errorf("history %s: %s is %+v (%v), want safety %d", history, id, s, ok, safe)
			}
		}
	}
}
