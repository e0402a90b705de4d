package btree

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// slots returns what t yields of the classes from position skip on.
func slots(t *Tree, in Classes, skip int, descending bool) (out []uint32) {
	visit := func(slot uint32) bool { out = append(out, slot); return true }
	if descending {
		t.Descend(in, skip, visit)
	} else {
		t.Ascend(in, skip, visit)
	}
	return out
}

// wellFormed checks what the walks rely on: counts, bounds, and that no node is empty or full.
func wellFormed(t rapid.TB, n *node) {
	if n.n == 0 || n.n >= maxItems {
		t.Fatalf("a node of %d items", n.n)
	}
	if n.children == nil {
		return
	}
	var classes [NumClasses]uint32
	for i, kid := range n.children.nodes {
		switch {
		case i >= int(n.n) && kid != nil:
			t.Fatalf("a kid that is gone is kept in memory")
		case i >= int(n.n):
			continue
		case n.item(i) != kid.item(0) || n.children.counts[i] != uint32(kid.count(All)):
			t.Fatalf("kid %d starts with %v and holds %d, its parent says %v and %d", i, kid.item(0), kid.count(All), n.item(i), n.children.counts[i])
		}
		kid.tally(&classes)
		wellFormed(t, kid)
	}
	if classes != n.children.classes {
		t.Fatalf("a branch counts %v, its children %v", n.children.classes, classes)
	}
}

// snapshot is a tree and what it should hold.
type snapshot struct {
	tree Tree
	want []Item
}

func (s *snapshot) check(t rapid.TB) {
	for _, in := range []Classes{All, 1 << 2, 0b1010_0101, 0} {
		var want []uint32
		for _, it := range s.want {
			if in.has(it.Class) {
				want = append(want, it.Slot)
			}
		}
		if n := s.tree.Len(in); n != len(want) {
			t.Fatalf("%d items of the classes %b, want %d", n, in, len(want))
		}
		for _, skip := range []int{0, 1, len(want) / 2, len(want) - 1, len(want), len(want) + 1} {
			if skip >= 0 && !slices.Equal(slots(&s.tree, in, skip, false), want[min(skip, len(want)):]) {
				t.Fatalf("classes %b from %d on", in, skip)
			}
		}
		slices.Reverse(want)
		for _, skip := range []int{0, len(want) / 3, len(want)} {
			if !slices.Equal(slots(&s.tree, in, skip, true), want[skip:]) {
				t.Fatalf("classes %b backwards from %d on", in, skip)
			}
		}
	}
}

// TestTree drives a tree and a sorted slice through inserts, removals, loads and snapshots: the two
// are equal at every step, and a snapshot stays as it was (promise 2).
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		keys := rapid.SampledFrom([]uint64{1, 50, 1 << 40}).Draw(t, "keys") // all tied, many, hardly any
		var tr Tree
		var twin []Item
		var kept []*snapshot
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				for range rapid.IntRange(1, 600).Draw(t, "n") {
					it := Item{r.Uint64N(keys), r.Uint32N(1 << 20), uint8(r.UintN(NumClasses))}
					if at, found := slices.BinarySearchFunc(twin, it, ByKey); !found {
						twin = slices.Insert(twin, at, it)
						tr.Insert(it, ByKey)
					}
				}
			},
			"remove": func(t *rapid.T) {
				run := rapid.Bool().Draw(t, "run") // neighbors, so that nodes empty
				at := 0
				for range min(len(twin), rapid.IntRange(1, 600).Draw(t, "n")) {
					if at = min(at, len(twin)-1); !run {
						at = r.IntN(len(twin))
					}
					tr.Delete(twin[at], ByKey)
					twin = slices.Delete(twin, at, at+1)
				}
			},
			"load": func(t *rapid.T) { tr.Load(twin) },
			"snapshot": func(t *rapid.T) {
				kept = append(kept, &snapshot{tr.Snapshot(), slices.Clone(twin)})
			},
			"": func(t *rapid.T) {
				(&snapshot{tr, twin}).check(t)
				for _, s := range kept {
					s.check(t)
				}
				if tr.root != nil {
					wellFormed(t, tr.root)
				}
			},
		})
	})
}

// TestFind finds and counts all items of a key, wherever the nodes part them.
func TestFind(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var tr Tree
	want := map[uint64][]uint32{}
	for slot := range uint32(20_000) {
		key := r.Uint64N(300)
		if key%7 == 0 {
			key = 7 // one that fills several nodes
		}
		tr.Insert(Item{Key: key, Slot: slot}, ByKey)
		want[key] = append(want[key], slot)
	}
	for key := range uint64(301) {
		var got []uint32
		tr.Find(key, func(slot uint32) { got = append(got, slot) })
		if !slices.Equal(got, want[key]) {
			t.Errorf("key %d: %d items, want %d", key, len(got), len(want[key]))
		}
		if n := tr.Count(key); n != len(want[key]) {
			t.Errorf("key %d: %d items counted, want %d", key, n, len(want[key]))
		}
	}
}

// TestSort: Sort is slices.SortFunc, whatever the keys have in common.
func TestSort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	down := func(a, b Item) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(b.Slot, a.Slot)) }
	for _, mask := range []uint64{0, 0xff, 0x300, 0xff00ff, 1 << 63, 0xffff << 40, math.MaxUint64} {
		for _, n := range []int{0, 1, 2, 3000} {
			items := make([]Item, n)
			for i := range items {
				items[i] = Item{Key: r.Uint64() & mask, Slot: r.Uint32()}
			}
			for _, order := range []Compare{ByKey, down} {
				want := slices.SortedFunc(slices.Values(items), order)
				if new(Sorter).Sort(items, nil, order); !slices.Equal(items, want) {
					t.Errorf("%d keys of %x: not in order", n, mask)
				}
			}
		}
	}
}

// TestSortText: items of one key are sorted by text, however long and alike the texts are, then by
// order, and all keys are as they were.
func TestSortText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 3000
	texts := make([]string, n)
	items := make([]Item, n)
	for i := range items {
		items[i] = Item{Key: r.Uint64N(3), Slot: uint32(n - i - 1)}
		for range r.IntN(30) {
			texts[i] += string(rune(r.IntN(2)))
		}
	}
	text := func(slot uint32) string { return texts[slot] }
	order := func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), strings.Compare(text(a.Slot), text(b.Slot)), cmp.Compare(a.Slot, b.Slot))
	}
	want := slices.SortedFunc(slices.Values(items), order)
	if new(Sorter).Sort(items, text, order); !slices.Equal(items, want) {
		t.Error("not in order")
	}
}

// BenchmarkTree measures what the read model does most: amending a tree after a snapshot of it was
// just taken, reading a page far into it, and finding an item by a hash.
func BenchmarkTree(b *testing.B) {
	const n = 300_000
	r := rand.New(rand.NewPCG(1, 2))
	items := make([]Item, n)
	for i := range items {
		items[i] = Item{r.Uint64(), uint32(i), uint8(i % NumClasses)}
	}
	b.Run("Sort", func(b *testing.B) {
		for b.Loop() {
			new(Sorter).Sort(slices.Clone(items), nil, ByKey)
		}
	})
	new(Sorter).Sort(items, nil, ByKey)
	var tr Tree
	tr.Load(items)
	b.Run("Load", func(b *testing.B) {
		for b.Loop() {
			tr.Load(items)
		}
	})
	b.Run("Amend", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			tr.Snapshot()
			tr.Delete(items[i*7919%n], ByKey)
			tr.Insert(items[i*7919%n], ByKey)
		}
	})
	b.Run("Page", func(b *testing.B) {
		for b.Loop() {
			rows := 0
			tr.Descend(All, n/2, func(uint32) bool { rows++; return rows < 30 })
		}
	})
	b.Run("PageOfClass", func(b *testing.B) {
		for b.Loop() {
			rows := 0
			tr.Descend(1<<5, n/2/NumClasses, func(uint32) bool { rows++; return rows < 30 })
		}
	})
	b.Run("Find", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			tr.Find(items[i*7919%n].Key, func(uint32) {})
		}
	})
}
