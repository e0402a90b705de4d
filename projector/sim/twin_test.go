package sim

import (
	"cmp"
	"maps"
	"slices"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// twin is a naive read model: what was acknowledged, by subject.
type twin struct {
	end      uint64
	subjects map[string]subject
	rejected map[uint64]string // the subject of each message that is no valid event, by sequence
}

// subject is the stream's messages on a subject.
type subject struct {
	last    uint64           // sequence of the last message; 0: purged
	valid   uint64           // of the last valid one
	record  readmodel.Record // that one
	after   int              // messages since, which are none
	loose   bool             // the stream has lost the last valid one
	removed uint64           // sequence of the last removal, before which everything is erased
}

func newTwin() *twin {
	return &twin{subjects: map[string]subject{}, rejected: map[uint64]string{}}
}

func (t *twin) clone() *twin {
	return &twin{t.end, maps.Clone(t.subjects), maps.Clone(t.rejected)}
}

// apply adds a valid event.
func (t *twin) apply(name string, r readmodel.Record) {
	t.end = r.Sequence
	removed := t.subjects[name].removed
	if r.Removed {
		removed = r.Sequence
	}
	t.subjects[name] = subject{last: r.Sequence, valid: r.Sequence, record: r, removed: removed}
}

// reject adds a message that is none. kept is how many messages of a subject the stream keeps.
func (t *twin) reject(name string, sequence uint64, kept int) {
	t.end = sequence
	t.rejected[sequence] = name
	s := t.subjects[name]
	s.last = sequence
	s.after++
	s.loose = s.loose || s.after >= kept
	t.subjects[name] = s
}

// purge takes every message of a subject out.
func (t *twin) purge(name string) {
	s := t.subjects[name]
	s.last, s.loose = 0, true
	t.subjects[name] = s
}

// names returns the subjects that the stream has messages of.
func (t *twin) names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(t.subjects)), func(name string) bool { return t.subjects[name].last == 0 })
}

// inventory returns the records that a model must hold.
func (t *twin) inventory() map[string]readmodel.Digest {
	var records []readmodel.Record
	for _, s := range t.subjects {
		if s.valid > 0 {
			records = append(records, s.record)
		}
	}
	slices.SortFunc(records, func(a, b readmodel.Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
	m := readmodel.New()
	m.Apply(records, t.end)
	return inventory(m)
}

func inventory(m *readmodel.Model) map[string]readmodel.Digest {
	return maps.Collect(m.Inventory().All())
}

// ledger is what became of entries, whatever became of the stream: rule R11. It knows each
// acknowledged delisting that no later acknowledged listing undid.
type ledger map[events.Subject]*delisting

type delisting struct {
	sequence uint64
	seen     bool // by the server, so that it must never show the entry again
}

// listed notes an acknowledged event that lists an entry, or delists it.
func (l ledger) listed(k events.Subject, sequence uint64, removed bool) {
	delete(l, k)
	if removed {
		l[k] = &delisting{sequence: sequence}
	}
}

// sees notes that the server shows the state at sequence. What was erased before it came is not
// seen.
func (l ledger) sees(sequence uint64, t *twin) {
	for k, d := range l {
		d.seen = d.seen || d.sequence <= sequence && !t.subjects[k.String()].loose
	}
}

// killed notes that the server has lost what it had not saved.
func (l ledger) killed(saved uint64, t *twin) {
	maps.DeleteFunc(l, func(k events.Subject, d *delisting) bool {
		return d.sequence > saved && t.subjects[k.String()].valid != d.sequence
	})
	for _, d := range l {
		d.seen = d.seen && d.sequence <= saved
	}
}
