package readmodel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"example.org/registry/events"
)

// folder is a reader of the feed, as httpapi/CONTRACT.md#changes tells it to be.
type folder struct {
	lists     map[string]json.RawMessage // by list and entry id
	at        uint64
	seen      uint64            // the highest Registry-Sequence
	removed   map[string]uint64 // by list and entry id: when
	reachedIt bool              // the last page did
}

func newFolder() *folder {
	return &folder{lists: map[string]json.RawMessage{}, removed: map[string]uint64{}}
}

// fold asks v for a page and folds its JSON.
func (f *folder) fold(t *rapid.T, v *View, limit, size int) {
	page := v.Feed().Page(f.at, limit, size)
	if page.Epoch != v.Epoch() || page.Since != f.at || page.UpToDate && page.Until != v.Sequence() ||
		!page.UpToDate && len(page.Changes) == 0 || len(page.Changes) > limit {
		t.Fatalf("since %d, limit %d, at %d: %+v", f.at, limit, v.Sequence(), page)
	}
	last := f.at
	for _, c := range page.Changes {
		if c.Sequence <= last || c.Sequence > page.Until {
			t.Fatalf("change %d after %d: %+v", c.Sequence, last, page)
		}
		last = c.Sequence
		key := string(c.List) + " " + c.ID
		if c.Row == nil {
			f.removed[key] = c.Sequence
			delete(f.lists, key)
			continue
		}
		if r := v.Entry(c.List, c.ID); r == nil || r != c.Row {
			t.Fatalf("%s has what the list does not show: %s", v.Digest(), c.Row.JSON())
		}
		if at := f.removed[key]; at > c.Sequence {
			t.Fatalf("set at %d after remove at %d", c.Sequence, at)
		}
		f.lists[key] = json.RawMessage(c.Row.JSON())
	}
	f.at, f.seen, f.reachedIt = page.Until, max(f.seen, v.Sequence()), page.UpToDate
}

// shown returns what the lists of a view show, in the form of a folder.
func shown(v *View) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, l := range events.Lists() {
		p, _ := v.List(context.Background(), ListQuery{List: l, Limit: 1 << 20})
		for _, r := range p.Rows {
			all[string(l)+" "+r.ID()] = json.RawMessage(r.JSON())
		}
	}
	return all
}

// digestOf is the feed's digest of what a folder has, by the words of the contract.
func digestOf(lists map[string]json.RawMessage) string {
	sum := new(big.Int)
	for key, entry := range lists {
		var list string
		_, _ = fmt.Sscan(key, &list)
		hash := sha256.Sum256([]byte(list + "\n" + string(entry)))
		sum.Add(sum, new(big.Int).SetBytes(hash[:16]))
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 128))
	return hex.EncodeToString(sum.FillBytes(make([]byte, 16)))
}

// Pages of any size, from replicas that lag differently, after restarts and rebuilds, give what the
// lists show once an answer is up to date and no earlier one was ahead of it.
func TestFeedFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair()
		p.model.NameFeed("e")
		client := newFolder()
		views := []*View{p.model.View()}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				p.restart(t)
				p.model.NameFeed("e")
			case 1:
				p.rebuild()
			default:
				p.batch(t)
			}
			views = append(views, p.model.View())
			for range rapid.IntRange(0, 4).Draw(t, "pages") {
				v := views[rapid.IntRange(0, len(views)-1).Draw(t, "replica")]
				if v.Sequence() < client.at {
					continue // it waits, and answers 503
				}
				client.fold(t, v, rapid.IntRange(1, 4).Draw(t, "limit"), rapid.SampledFrom([]int{0, 900, MaxFeedPageBytes}).Draw(t, "size"))
				if client.reachedIt && client.at >= client.seen {
					client.same(t, v)
				}
			}
		}
		for v := p.model.View(); !client.reachedIt || client.at < v.Sequence(); {
			client.fold(t, v, 1000, MaxFeedPageBytes)
		}
		client.same(t, p.model.View())
	})
}

func (f *folder) same(t *rapid.T, v *View) {
	want := shown(v)
	if !maps.EqualFunc(f.lists, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		t.Fatalf("at %d:\n got %s\nwant %s", f.at, f.lists, want)
	}
	if got := digestOf(f.lists); got != v.Feed().Digest().String() {
		t.Fatalf("digest %s, the server says %s", got, v.Feed().Digest())
	}
}

// rebuild replays the log into a new model.
func (p *pair) rebuild() {
	m := New()
	m.NameFeed(p.model.View().Epoch())
	m.BeginBulk()
	for i, d := range p.log {
		m.Apply([]Record{p.renderer.Render(uint64(i+1), d)}, uint64(i+1))
	}
	m.EndBulk()
	p.model = m
}

// Two models of one content have one feed, and its tag tells apart what the pages tell apart.
func TestFeedTag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, tags := newPair(), map[string]string{} // pages from 0, by tag
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			p.batch(t)
			v := p.model.View()
			p.rebuild()
			again := p.model.View()
			text := feedJSON(v.Feed().Page(0, 1000, MaxFeedPageBytes))
			if other := feedJSON(again.Feed().Page(0, 1000, MaxFeedPageBytes)); text != other || v.Feed().Tag() != again.Feed().Tag() {
				t.Fatalf("after a rebuild %s is\n%s\nnot\n%s", again.Feed().Tag(), other, text)
			}
			if v.Feed().LastChange() != again.Feed().LastChange() || v.Feed().LastChange() > v.Sequence() {
				t.Fatalf("last change %d, after a rebuild %d", v.Feed().LastChange(), again.Feed().LastChange())
			}
			if old, known := tags[v.Feed().Tag()]; known && old != text {
				t.Fatalf("tag %s is of\n%s\nand\n%s", v.Feed().Tag(), old, text)
			}
			tags[v.Feed().Tag()] = text
		}
	})
	m := New()
	none := m.View().Feed().Tag()
	if m.NameFeed("other"); m.View().Feed().Tag() == none || m.View().Epoch() != "other" {
		t.Error("streams share a tag")
	}
	if m.View().Feed().LastChange() != 0 {
		t.Error("a change of nothing")
	}
}
