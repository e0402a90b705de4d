package readmodel

import (
	"crypto/sha256"
	"strconv"

	"example.org/registry/events"
	"example.org/registry/readmodel/btree"
)

// The feed lists every entry and every tombstone by the stream sequence of its last change
// (httpapi/CONTRACT.md#changes). It is a function of the content. Any model of the same stream has
// the same feed at the same sequence, so a client can continue with another replica or after a
// rebuild.

// feed is the facet of changes. The key of an item is a sequence; its slot is the RowRef of the
// row, or of the tombstone, with this sequence. Sequences are unique, so it is never both.
type feed struct {
	tree    btree.Tree
	content *content
}

func (f *feed) apply(ch change) {
	f.move(ch.stone, ch.wasStone.position(), ch.isStone.position())
	if ch.rowChange != (rowChange{}) {
		f.move(ch.ref(), ch.old.position(), ch.row.position())
	}
}

// move moves the item of ref from one sequence to another. A sequence of 0 stands for no item.
func (f *feed) move(ref RowRef, from, to uint64) {
	if from == to {
		return
	}
	if from > 0 {
		f.tree.Delete(btree.Item{Key: from, Slot: uint32(ref)}, btree.ByKey)
	}
	if to > 0 {
		f.tree.Insert(btree.Item{Key: to, Slot: uint32(ref)}, btree.ByKey)
	}
}

func (f *feed) reload(s *scratch) {
	items := s.room(f.content.numRows())
	for r := range f.content.rows() {
		if r.position() > 0 {
			items = append(items, btree.Item{Key: r.sequence, Slot: uint32(r.Ref())})
		}
	}
	for list := range f.content.tombstones.lists {
		for slot, d := range f.content.tombstones.lists[list].values.all() {
			if at := d.position(); at > 0 {
				items = append(items, btree.Item{Key: at, Slot: uint32(NewRowRef(list, slot))})
			}
		}
	}
	s.sorter.Sort(items, nil, btree.ByKey)
	f.tree.Load(items)
}

func (f *feed) publish(v *View) { v.feed = f.tree.Snapshot() }

// feedDigest is the facet of the digest of all shown rows (Row.feedDigest).
type feedDigest struct {
	digest  Digest
	content *content
}

func (f *feedDigest) apply(ch change) {
	if was, is := ch.old.feedText(), ch.row.feedText(); was != is {
		if was != "" {
			f.digest.sub(ch.old.feedDigest())
		}
		if is != "" {
			f.digest.Add(ch.row.feedDigest())
		}
	}
}

func (f *feedDigest) reload(*scratch) {
	f.digest = Digest{}
	for r := range f.content.rows() {
		if r.feedText() != "" {
			f.digest.Add(r.feedDigest())
		}
	}
}

func (f *feedDigest) publish(v *View) { v.feedDigest = f.digest }

// position returns the row's sequence in the feed, or 0 for a nil row.
func (r *Row) position() uint64 {
	if r == nil {
		return 0
	}
	return r.sequence
}

// position returns the tombstone's sequence in the feed, or 0 for a nil tombstone.
func (d *delisting) position() uint64 {
	if d == nil {
		return 0
	}
	return d.sequence
}

// feedText returns the text of a row in the feed, or "" if its list does not show it.
func (r *Row) feedText() string {
	if r == nil || !r.shown() {
		return ""
	}
	return r.JSON()
}

// feedDigest returns the hash of a shown row that the feed's digest includes. Clients compute the
// same.
func (r *Row) feedDigest() Digest {
	var room [2048]byte
	b := append(append(room[:0], r.List()...), '\n')
	sum := sha256.Sum256(append(b, r.JSON()...))
	return Digest(sum[:len(Digest{})])
}

// Epoch names the feed: it is the name of the history that the view's sequences belong to, or one of
// this server's own (NameFeed). It is empty while the stream is read again.
func (v *View) Epoch() string { return v.epoch }

// FeedSequence returns the view's sequence as the feed counts it, and how much that is more.
func (v *View) FeedSequence() (sequence, base uint64) {
	base = v.own.base()
	return v.sequence + base, base
}

// LastChange returns the sequence of the last change in the feed, or 0 if the feed is empty.
func (v *View) LastChange() uint64 {
	if last, ok := v.feed.Last(); ok {
		return last.Key + v.own.base()
	}
	for rank := int(v.own.base()) - 1; rank >= 0; rank-- {
		if c, ok := v.ownChange(rank); ok {
			return c.Sequence
		}
	}
	return 0
}

// FeedDigest identifies the content of the lists without view totals. Unlike Digest it can be
// computed from the feed alone.
func (v *View) FeedDigest() Digest { return v.feedDigest }

// FeedTag returns a tag of the feed, 32 hexadecimal digits. It changes with every sequence, since
// pages name the last one.
func (v *View) FeedTag() string {
	var at Digest
	until, _ := v.FeedSequence()
	at.set(until, v.LastChange())
	return contentTag("changes "+strconv.Itoa(v.feed.Len(btree.All))+" "+v.epoch, v.feedDigest, at)
}

// Change is the last change of an entry.
type Change struct {
	Sequence uint64 // stream sequence
	List     events.List
	ID       string // entry id
	Row      *Row   // as the list shows it; nil if the list does not show the entry
}

// FeedPage is a part of the feed: the changes after Since, up to Until. The next page begins at
// Until.
type FeedPage struct {
	Epoch        string
	Since, Until uint64
	UpToDate     bool // no changes follow in the view; Until is its sequence
	Changes      []Change
}

// The sizes of a page, in bytes.
const (
	// MaxFeedPage bounds a page as JSON or as events, unless a single change exceeds it.
	MaxFeedPage = 1 << 20
	// feedRoom bounds what a change, or the frame of a page, takes besides entry and epoch.
	feedRoom = 256
)

// Feed returns at most limit changes after since, as many as fit into size bytes, but at least one.
// since must not be after the feed's sequence.
func (v *View) Feed(since uint64, limit, size int) FeedPage {
	until, base := v.FeedSequence()
	p := FeedPage{Epoch: v.epoch, Since: since, Until: until, UpToDate: true}
	size -= feedRoom + 6*len(v.epoch) // JSON may escape it
	add := func(c Change) bool {
		if size -= feedRoom + len(c.Row.feedText()); len(p.Changes) > 0 && size < 0 || len(p.Changes) == limit {
			p.Until, p.UpToDate = p.Changes[len(p.Changes)-1].Sequence, false
			return false
		}
		p.Changes = append(p.Changes, c)
		return true
	}
	for rank := since; rank < base; rank++ {
		if c, ok := v.ownChange(int(rank)); ok && !add(c) {
			return p
		}
	}
	v.feed.AscendFrom(max(since, base)-base+1, func(it btree.Item) bool {
		c := v.changeOf(it)
		c.Sequence += base
		return add(c)
	})
	return p
}

// changeOf resolves an item of the feed.
func (v *View) changeOf(it btree.Item) Change {
	ref := RowRef(it.Slot)
	c := Change{Sequence: it.Key, List: events.Lists()[ref.List()]}
	if r := v.Row(ref); r.position() != it.Key {
		c.ID = v.gone[ref.List()].get(ref.Slot()).entryID
	} else if c.ID = r.ID(); r.shown() {
		c.Row = r
	}
	return c
}
