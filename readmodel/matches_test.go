package readmodel

import (
	"context"
	"fmt"
	"testing"

	"example.org/registry/events"
)

// TestRememberedTotals: the totals of a remembered search follow verifications, proofs, delistings and entries in
// slots given back, several changes of one slot in a batch too, under every filter.
func TestRememberedTotals(t *testing.T) {
	m, r, seq := New(), NewRenderer(), uint64(0)
	next := func(d events.Data) Record {
		seq++
		return r.Render(seq, d)
	}
	for round := range 40 {
		var records []Record
		for i := range 5 {
			e := numbered((round+i)%6, 1)
			e.Verified, e.Proofs.Private = (round+i)%3 == 0, (round*i)%4 == 1
			if (round*3+i)%7 == 0 {
				e.Reason = "nic"
			}
			records = append(records, next(e))
			if (round+2*i)%5 == 0 {
				records = append(records, next(events.Delisting{List: e.List, EntryID: e.EntryID}))
			}
		}
		v := m.Apply(records, seq)
		if got, want := filteredTotals(v), filteredTotals(forgetful(v)); got != want {
			t.Fatalf("round %d: %s, asked anew %s", round, got, want)
		}
	}
	if hits := m.View().Remembered().Hits; hits == 0 {
		t.Error("nothing was remembered")
	}
}

// forgetful is v without anything remembered.
func forgetful(v *View) *View {
	other := *v
	other.accelerator = newAccelerator()
	return &other
}

func filteredTotals(v *View) (totals string) {
	for status := StatusAll; status <= StatusRisk; status++ {
		for proofs := ProofsAll; proofs <= ProofsPrivate; proofs++ {
			p, err := v.List(context.Background(), ListQuery{List: events.Scammers, Search: "oszust", Status: status, Proofs: proofs, Limit: 1})
			totals += fmt.Sprint(p.Total, err, " ")
		}
	}
	return totals
}
