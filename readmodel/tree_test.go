package readmodel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// slots is what t yields from position skip on.
func slots(t *tree, skip int, descending bool) (out []uint32) {
	visit := func(slot uint32) bool { out = append(out, slot); return true }
	if descending {
		t.descend(skip, visit)
	} else {
		t.ascend(skip, visit)
	}
	return out
}

// wellFormed checks what the walks rely on: counts, bounds, and that no node is empty or full.
func wellFormed(t interface{ Fatalf(string, ...any) }, n *node) {
	if len(n.items) == 0 || len(n.items) >= maxItems {
		t.Fatalf("a node of %d items", len(n.items))
	}
	for i, kid := range n.kids {
		if n.items[i] != kid.items[0] || n.counts[i] != kid.size() {
			t.Fatalf("kid %d starts with %v and holds %d, its parent says %v and %d", i, kid.items[0], kid.size(), n.items[i], n.counts[i])
		}
		wellFormed(t, kid)
	}
}

type shared struct {
	tree tree
	want []item
}

func (s *shared) check(t interface{ Fatalf(string, ...any) }) {
	var want []uint32
	for _, it := range s.want {
		want = append(want, it.slot)
	}
	if s.tree.count != len(want) || !slices.Equal(slots(&s.tree, 0, false), want) {
		t.Fatalf("a tree of %d items differs from its twin of %d", s.tree.count, len(want))
	}
	for _, skip := range []int{0, 1, len(want) / 2, len(want) - 1, len(want), len(want) + 1} {
		if skip >= 0 && !slices.Equal(slots(&s.tree, skip, false), want[min(skip, len(want)):]) {
			t.Fatalf("from %d on", skip)
		}
	}
	slices.Reverse(want)
	for _, skip := range []int{0, len(want) / 3, len(want)} {
		if !slices.Equal(slots(&s.tree, skip, true), want[skip:]) {
			t.Fatalf("backwards from %d on", skip)
		}
	}
}

// TestTree drives a tree and a sorted slice through inserts, removals, loads and shares: the two
// are equal at every step, and what was shared stays as it was (promise 2).
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		keys := rapid.SampledFrom([]uint64{1, 50, 1 << 40}).Draw(t, "keys") // all tied, many, hardly any
		var tr tree
		var twin []item
		var kept []*shared
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				for range rapid.IntRange(1, 600).Draw(t, "n") {
					it := item{r.Uint64N(keys), r.Uint32N(1 << 20)}
					if at, found := slices.BinarySearchFunc(twin, it, compareChats); !found {
						twin = slices.Insert(twin, at, it)
						tr.insert(it, compareChats)
					}
				}
			},
			"remove": func(t *rapid.T) {
				run := rapid.Bool().Draw(t, "run") // neighbours, so that nodes empty
				at := 0
				for range min(len(twin), rapid.IntRange(1, 600).Draw(t, "n")) {
					if at = min(at, len(twin)-1); !run {
						at = r.IntN(len(twin))
					}
					tr.remove(twin[at], compareChats)
					twin = slices.Delete(twin, at, at+1)
				}
			},
			"load": func(t *rapid.T) { tr.load(twin) },
			"share": func(t *rapid.T) {
				kept = append(kept, &shared{tr.share(), slices.Clone(twin)})
			},
			"": func(t *rapid.T) {
				(&shared{tr, twin}).check(t)
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

// TestTreeWithKey finds all items of a key, wherever the nodes part them.
func TestTreeWithKey(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var tr tree
	want := map[uint64][]uint32{}
	for slot := range uint32(20_000) {
		key := r.Uint64N(300)
		if key%7 == 0 {
			key = 7 // one that fills several nodes
		}
		tr.insert(item{key, slot}, compareChats)
		want[key] = append(want[key], slot)
	}
	for key := range uint64(301) {
		var got []uint32
		tr.withKey(key, func(slot uint32) { got = append(got, slot) })
		if !slices.Equal(got, want[key]) {
			t.Errorf("key %d: %d items, want %d", key, len(got), len(want[key]))
		}
	}
}

// TestPaged: what was shared stays as it was.
func TestPaged(t *testing.T) {
	var p paged[int64]
	if p.get(9) != 0 {
		t.Error("not zero where nothing was set")
	}
	p.set(3*pageLen, 1)
	old := p.share()
	p.set(3*pageLen, 2)
	p.set(9*pageLen, 3)
	older := p.share()
	p.set(3*pageLen, 4)
	if old.get(3*pageLen) != 1 || old.get(9*pageLen) != 0 || older.get(3*pageLen) != 2 || older.get(9*pageLen) != 3 || p.get(3*pageLen) != 4 {
		t.Error("a shared value changed")
	}
}
