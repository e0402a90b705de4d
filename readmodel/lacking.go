package readmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.org/registry/events"
)

// A model knows more than its stream where the stream was rewound, or lost messages, or where a
// state came from elsewhere (events/CONTRACT.md#another-stream). Such a state has sequence 0.

type lacking struct {
	subjects map[events.Subject]struct{}
	entries  int    // of them: those whose state the feed has
	grown    uint64 // how often one was added
}

func (l *lacking) add(k events.Subject) {
	if _, has := l.subjects[k]; has {
		return
	}
	k.ID = strings.Clone(k.ID) // may be a part of a longer string
	l.subjects[k] = struct{}{}
	l.grown++
	if k.Kind == events.KindEntry {
		l.entries++
	}
}

// found follows the sequence of a state that is about to be set.
func (l *lacking) found(r *Record) {
	if r.Sequence == 0 {
		l.add(r.Subject)
	} else if _, has := l.subjects[r.Subject]; has {
		delete(l.subjects, r.Subject)
		if r.Subject.Kind == events.KindEntry {
			l.entries--
		}
	}
}

// Lacking returns the subjects whose state is known, and is not known to be in the stream, in no
// particular order. The same goroutines as for Tombstones may call it.
func (m *Model) Lacking() (all []events.Subject) {
	return slices.AppendSeq(all, maps.Keys(m.content.lacking.subjects))
}

// Lacks reports whether Lacking has a subject. The same goroutines may call it.
func (m *Model) Lacks(k events.Subject) bool {
	_, is := m.content.lacking.subjects[k]
	return is
}

// Lacking returns how many subjects have a state that the stream is not known to hold.
func (v *View) Lacking() int { return v.lacking }

// LackingEntries is Lacking for the subjects of the feed: entries, removed ones included.
func (v *View) LackingEntries() int { return v.lackingEntries }

// After returns the subjects whose state had its last message after a sequence, in no particular
// order. The same goroutines as for Tombstones may call it.
func (m *Model) After(sequence uint64) (all []events.Subject) {
	add := func(at uint64, kind events.Kind, l events.List, id string) {
		if at > sequence {
			all = append(all, events.Subject{Kind: kind, List: l, ID: id})
		}
	}
	for i, l := range events.Lists() {
		in := m.content.lists[i]
		for slot, r := range in.orders.rows.all() {
			if r != nil {
				add(r.sequence, events.KindEntry, l, r.ID())
				add(in.totals.get(slot).sequence, events.KindViews, l, r.ID())
			}
		}
		for id, t := range in.unlisted {
			add(t.sequence, events.KindViews, l, id)
		}
		m.content.tombstones.lists[i].all(func(d *delisting) { add(d.sequence, events.KindEntry, l, d.entryID) })
	}
	m.content.donations.all(func(d *donation) { add(d.sequence, events.KindDonation, "", d.donationID) })
	return all
}

// Rewind sets the checkpoint back, for a stream whose messages after it are not those that were
// read. All states stay; those that were read after it are lacking until they are read again. The
// feed has no name until NameFeed. Only the owner may call it, and not in bulk.
func (m *Model) Rewind(checkpoint uint64) {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.content.checkpoint, m.epoch, m.own = checkpoint, "", nil
	m.lack(m.After(checkpoint))
}

// Lack records that the stream does not hold the states of some subjects, and publishes that. Only
// the owner may call it, and not in bulk.
func (m *Model) Lack(subjects []events.Subject) {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.lack(subjects)
}

func (m *Model) lack(subjects []events.Subject) {
	c := &m.content
	for _, k := range subjects {
		c.lacking.add(k)
		switch k.Kind {
		case events.KindDonation:
			if old, slot := c.donations.get(k.ID); old != nil {
				is := *old
				is.sequence = 0
				c.donations.replace(k.ID, old, slot, &is)
			}
		case events.KindViews:
			l := c.lists[listIndex(k.List)]
			r := l.row(k.ID)
			t := l.counted(k.ID, r)
			t.sequence = 0
			l.setTotal(k.ID, r, t)
		default:
			c.lackEntry(k)
		}
	}
	c.donations.changed = true
	m.endBulk()
}

func (c *content) lackEntry(k events.Subject) {
	list := listIndex(k.List)
	if old := c.lists[list].row(k.ID); old != nil {
		is := *old
		is.sequence = 0
		c.lists[list].orders.setRow(rowChange{old: old, row: &is})
		return
	}
	if old, slot := c.tombstones.lists[list].get(k.ID); old != nil {
		is := *old
		is.sequence = 0
		c.tombstones.lists[list].replace(k.ID, old, slot, &is)
	}
}

// ownFeed is the feed of a model that shows what its stream lacks: nobody may fold it with another
// server's. Those states come first, with the sequences from 1 on, and everything that the stream
// has comes after them.
type ownFeed struct {
	name   string
	grown  uint64     // lacking.grown when the feed was named
	states []ownState // by subject
}

// ownState is an entry or a tombstone that had sequence 0 when the feed was named.
type ownState struct {
	subject events.Subject
	ref     RowRef
	removed bool
}

// base returns how many sequences precede the stream's.
func (o *ownFeed) base() uint64 {
	if o == nil {
		return 0
	}
	return uint64(len(o.states))
}

// NameFeed names the feed after the history that the model's sequences belong to, and publishes it.
// With own it gets a name of its own, which it keeps while nothing more is lacking
// (httpapi/CONTRACT.md#changes). Only the owner may call it, and not in bulk.
func (m *Model) NameFeed(history string, own bool) {
	m.writing.Lock()
	defer m.writing.Unlock()
	epoch, is := history, (*ownFeed)(nil)
	if own {
		if is = m.own; is == nil || is.grown != m.content.lacking.grown {
			is = m.content.ownFeed(history)
		}
		epoch = is.name
	}
	if epoch == m.epoch && is == m.own {
		return
	}
	m.epoch, m.own = epoch, is
	if !m.bulk {
		m.publish()
	}
}

func (c *content) ownFeed(history string) *ownFeed {
	o := &ownFeed{grown: c.lacking.grown}
	for k := range c.lacking.subjects {
		if k.Kind != events.KindEntry {
			continue
		}
		s, list := ownState{subject: k}, listIndex(k.List)
		if r := c.lists[list].row(k.ID); r != nil {
			s.ref = r.Ref()
		} else {
			_, slot := c.tombstones.lists[list].get(k.ID)
			s.ref, s.removed = NewRowRef(list, slot), true
		}
		o.states = append(o.states, s)
	}
	slices.SortFunc(o.states, func(a, b ownState) int { return strings.Compare(a.subject.String(), b.subject.String()) })
	h := sha256.New()
	for _, s := range o.states {
		var k known
		list := s.ref.List()
		if s.removed {
			k, _ = knownEntry(s.subject.List, nil, c.tombstones.lists[list].values.get(s.ref.Slot()))
		} else {
			k, _ = knownEntry(s.subject.List, c.row(s.ref), nil)
		}
		fmt.Fprintf(h, "%s %d\n", s.subject, k.Revision)
	}
	o.name = history + "~" + hex.EncodeToString(h.Sum(nil)[:4])
	return o
}

// ownChange returns the state at a rank of the own feed, or false if the stream has it by now.
func (v *View) ownChange(rank int) (Change, bool) {
	s := &v.own.states[rank]
	c := Change{Sequence: uint64(rank) + 1, List: s.subject.List, ID: s.subject.ID}
	if s.removed {
		d := v.gone[s.ref.List()].get(s.ref.Slot())
		return c, d != nil && d.sequence == 0 && d.entryID == s.subject.ID
	}
	r := v.Row(s.ref)
	if r == nil || r.sequence > 0 || r.ID() != s.subject.ID {
		return c, false
	}
	if r.shown() {
		c.Row = r
	}
	return c, true
}
