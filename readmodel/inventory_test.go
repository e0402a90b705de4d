package readmodel

import (
	"maps"
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// inventory is that of a model of n entries, every other one counted, some delisted again, and a
// donation.
func inventoryModel(n int, backwards bool) *Model {
	m, r := New(), NewRenderer()
	var all []events.Data
	for i, e := range eventstest.Entries(n, 7) {
		all = append(all, e)
		if i%2 == 0 {
			all = append(all, events.Views{Revision: 1, List: e.List, EntryID: e.EntryID, Views: int64(i)})
		}
	}
	if backwards {
		for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
			all[i], all[j] = all[j], all[i]
		}
	}
	var records []Record
	for i, d := range all {
		records = append(records, r.Render(uint64(i+1), d))
	}
	for i, e := range eventstest.Entries(n, 7) {
		if i%5 == 0 {
			records = append(records, r.Render(uint64(len(records)+1), events.Delisting{Revision: 1, List: e.List, EntryID: e.EntryID}))
		}
	}
	m.Apply(records, uint64(len(records)))
	return m
}

// Two models of the same content, built in different orders, have the same inventory (promise 1),
// and a flipped bit of what readers get shows in exactly one record.
func TestInventory(t *testing.T) {
	a, b := inventoryModel(60, false), inventoryModel(60, true)
	want := maps.Collect(a.Inventory().All())
	if got := maps.Collect(b.Inventory().All()); !maps.Equal(got, want) || len(got) != b.Inventory().Len() || len(got) < 60 {
		t.Fatalf("inventories of %d (%d) and %d records differ", len(got), b.Inventory().Len(), len(want))
	}
	for name, corrupt := range map[string]func(c *catalog, r *Row){
		"a letter of the name": func(_ *catalog, r *Row) { r.blob = strings.Replace(r.blob, `"name":"`, `"nbme":"`, 1) },
		"the time":             func(_ *catalog, r *Row) { r.reported ^= 1 },
		"a filter":             func(c *catalog, r *Row) { c.orders.filters.set(r.slot, r.filter^1) },
		"the views":            func(c *catalog, r *Row) { c.totals.set(r.slot, total{1 << 40, 1, 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			m := inventoryModel(60, false)
			c := m.content.lists[0]
			for _, r := range c.orders.rows.all() {
				if r != nil && c.totals.get(r.slot).counted() {
					corrupt(c, r)
					break
				}
			}
			different := 0
			for k, h := range m.Inventory().All() {
				if want[k] != h {
					different++
				}
			}
			if different != 1 {
				t.Errorf("%d records differ, want 1", different)
			}
		})
	}
}
