package readmodel

import (
	"maps"
	"slices"
	"strings"

	"example.org/registry/events"
)

// A model knows more than its stream where the stream was rewound, or lost messages, or where a state
// came from elsewhere. Such a state has sequence 0, and its subject is lacking.

func (m *Model) addLacking(k events.Subject) {
	k.ID = strings.Clone(k.ID) // may be a part of a longer string
	m.unheld[k] = struct{}{}
}

// Lacking returns the subjects whose state is known, and is not known to be in the stream, in no
// particular order. The same goroutines as for Known may call it.
func (m *Model) Lacking() []events.Subject { return slices.Collect(maps.Keys(m.unheld)) }

// Lacking returns how many subjects have a state that the stream is not known to hold.
func (v *View) Lacking() int { return v.lacking }

// Rewind sets the checkpoint back, for a stream whose messages after it are not those that were
// read. All states stay; those that were read after it are lacking until they are read again. The
// feed has no name until NameFeed. Only the owner may call it, and not in bulk.
func (m *Model) Rewind(checkpoint uint64) {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.sequence, m.epoch = checkpoint, ""
	m.lack(m.after(checkpoint))
}

// Lack records that the stream does not hold the states of some subjects, and publishes that. Only
// the owner may call it, and not in bulk.
func (m *Model) Lack(subjects []events.Subject) {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.lack(subjects)
}

func (m *Model) lack(subjects []events.Subject) {
	for _, k := range subjects {
		m.addLacking(k)
		m.setSequence(k, 0)
	}
	m.publish()
}

// after returns the subjects whose state had its last message after a sequence.
func (s *state) after(sequence uint64) (all []events.Subject) {
	for i, name := range events.Lists() {
		s.lists[i].entries.Scan(func(id string, e entry) bool {
			if e.sequence > sequence {
				all = append(all, events.Subject{Kind: events.KindEntry, List: name, ID: id})
			}
			if e.total.sequence > sequence {
				all = append(all, events.Subject{Kind: events.KindViews, List: name, ID: id})
			}
			return true
		})
	}
	s.donations.Scan(func(id string, d donation) bool {
		if d.sequence > sequence {
			all = append(all, events.Subject{Kind: events.KindDonation, ID: id})
		}
		return true
	})
	return all
}

// NameFeed names the feed after the stream that the model's sequences belong to, and publishes it.
// Without a name there is no feed. Only the owner may call it, and not in bulk.
func (m *Model) NameFeed(epoch string, _ bool) {
	m.writing.Lock()
	defer m.writing.Unlock()
	if epoch == m.epoch {
		return
	}
	m.epoch = epoch
	if !m.bulk {
		m.publish()
	}
}
