package readmodel

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
)

// sharingRecords returns records of n entries with one chat id, on two lists, among as many others.
func sharingRecords(n int) (records []Record) {
	r := NewRenderer()
	for i := range 2 * n {
		e := events.Entry{Revision: 1, List: events.Lists()[i/2%2], EntryID: fmt.Sprint("e", i*7919%(2*n)), ChatID: "shared", Name: fmt.Sprint("n", i%97),
			Verified: i%3 == 0, ReportedAt: time.Unix(int64(i%53), 0)}
		if i%2 == 1 {
			e.ChatID = fmt.Sprint("own", i)
		}
		if i%5 == 0 {
			e.Proofs.ID = "p"
		}
		records = append(records, r.Render(uint64(i+1), e))
	}
	return records
}

// TestSharedChatID: the pages of a chat id that very many entries share are those of the whole list
// without the other entries.
func TestSharedChatID(t *testing.T) {
	for _, n := range []int{998, 1200} {
		m := New()
		records := sharingRecords(n)
		m.Apply(records, uint64(len(records)))
		v := m.View()
		for _, l := range []events.List{events.Scammers, events.Servers} {
			for s := range numOrders * 2 {
				for _, status := range []Status{StatusAll, StatusVerified, StatusRisk} {
					q := ListQuery{List: l, Sort: Sort(s), Status: status, Proofs: Proofs(s % 2), Limit: 2 * n}
					all, err := v.List(t.Context(), q)
					require.NoError(t, err)
					want := slices.DeleteFunc(all.Rows, func(r *Row) bool { return r.ChatID() != "shared" })
					q.ID, q.Limit = "shared", 50
					for q.Skip = 0; q.Skip <= len(want); q.Skip += 70 {
						p, err := v.List(t.Context(), q)
						require.NoError(t, err)
						require.Equal(t, len(want), p.Total)
						require.True(t, slices.Equal(p.Rows, want[q.Skip:min(q.Skip+50, len(want))]), "%+v", q)
					}
					if Sort(s) == Newest && status == StatusAll {
						found, err := v.Check(t.Context(), CheckQuery{ID: "shared"})
						require.NoError(t, err)
						require.Equal(t, Group{l, want[:MaxGroup]}, found.Groups[listIndex(l)])
					}
				}
			}
		}
	}
}

// TestSharedRanges: the number of ids of a range follows each change, however many entries share an id.
func TestSharedRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, r := New(), NewRenderer()
		for seq := range uint64(rapid.IntRange(1, 40).Draw(t, "changes")) {
			e := numbered(rapid.IntRange(0, 5).Draw(t, "entry"), int(seq+1))
			e.List = someList().Draw(t, "list")
			e.ChatID, e.Verified = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "chat"), rapid.Bool().Draw(t, "verified")
			var d events.Data = e
			if rapid.IntRange(0, 3).Draw(t, "delisted") == 0 {
				d = events.Delisting{List: e.List, EntryID: e.EntryID, Revision: e.Revision}
			}
			m.Apply([]Record{r.Render(seq+1, d)}, seq+1)

			shown := map[string]bool{}
			for _, l := range events.Lists() {
				p, err := m.View().List(t.Context(), ListQuery{List: l, Limit: 9})
				require.NoError(t, err)
				for _, r := range p.Rows {
					shown[r.ChatID()] = true
				}
			}
			for _, id := range []string{"a", "b"} {
				want := 0
				if shown[id] {
					want = 1
				}
				require.Equal(t, want, m.chats.counts[chatKey(id)>>rangeShift], id)
			}
		}
	})
}

// BenchmarkSharedChatID reports what publishing one more entry of a shared chat id takes.
func BenchmarkSharedChatID(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := New()
			records := sharingRecords(n)
			m.Apply(records, uint64(len(records)))
			r, seq := NewRenderer(), uint64(len(records))
			for i := 0; b.Loop(); i++ {
				seq++
				m.Apply([]Record{r.Render(seq, events.Entry{Revision: 1, List: events.Scammers, EntryID: fmt.Sprint("new", i), ChatID: "shared", Name: "x"})}, seq)
			}
		})
		b.Run(fmt.Sprint("check/", n), func(b *testing.B) {
			m := New()
			records := sharingRecords(n)
			m.Apply(records, uint64(len(records)))
			v := m.View()
			for b.Loop() {
				_, _ = v.Check(b.Context(), CheckQuery{ID: "shared"})
			}
		})
	}
}
