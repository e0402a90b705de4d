package readmodel

import (
	"example.org/registry/events"
)

// Kind is what a subject is about.
type Kind uint8

// The kinds of subject.
const (
	KindEntry Kind = iota
	KindViews
	KindDonation
)

// Key names one subject: the unit of state. List is empty for donations.
type Key struct {
	Kind Kind
	List events.List
	ID   string // entry id or donation id
}

// KeyOf is the key of the subject that d belongs on. A delisting has its entry's key.
func KeyOf(d events.Data) Key {
	switch d := d.(type) {
	case events.Entry:
		return Key{KindEntry, d.List, d.EntryID}
	case events.Delisting:
		return Key{KindEntry, d.List, d.EntryID}
	case events.Views:
		return Key{KindViews, d.List, d.EntryID}
	case events.Donation:
		return Key{KindDonation, "", d.DonationID}
	case events.DonationRemoval:
		return Key{KindDonation, "", d.DonationID}
	}
	return Key{}
}

// Subject is the NATS subject of k.
func (k Key) Subject() string {
	switch k.Kind {
	case KindViews:
		return events.Views{List: k.List, EntryID: k.ID}.Subject()
	case KindDonation:
		return events.Donation{DonationID: k.ID}.Subject()
	default:
		return events.Entry{List: k.List, EntryID: k.ID}.Subject()
	}
}

// numLists is the number of lists; listIndex numbers them in the order of events.Lists.
const numLists = 3

func listIndex(l events.List) int {
	switch l {
	case events.Scammers:
		return 0
	case events.Servers:
		return 1
	default:
		return 2
	}
}
