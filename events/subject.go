package events

import "strings"

// SubjectKind says what the messages of a subject are about.
type SubjectKind uint8

// What a subject is about. The zero value is none of them.
const (
	EntrySubject SubjectKind = iota + 1
	ViewsSubject
	DonationSubject
)

// Subject is a NATS subject of the contract, taken apart.
type Subject struct {
	Kind SubjectKind
	List List   // empty for a donation
	ID   string // entryId or donationId
}

// ParseSubject reads registry.<list>.<entryId>, registry.views.<list>.<entryId> and
// registry.donations.<donationId>; any other subject is an *Error. It does not allocate
// unless it fails: the parts share s.
func ParseSubject(s string) (Subject, error) {
	if sub, ok := parseSubject(s); ok {
		return sub, nil
	}
	return Subject{}, wrong("subject", "unknown subject "+quote(s))
}

func parseSubject(s string) (Subject, bool) {
	rest, ok := strings.CutPrefix(s, "registry.")
	if !ok {
		return Subject{}, false
	}
	head, id, _ := strings.Cut(rest, ".")
	sub := Subject{Kind: EntrySubject, List: List(head), ID: id}
	switch head {
	case "donations":
		sub.Kind, sub.List = DonationSubject, ""
	case "views":
		list, entryID, _ := strings.Cut(id, ".")
		sub = Subject{Kind: ViewsSubject, List: List(list), ID: entryID}
	}
	return sub, isKey(sub.ID) && (sub.Kind == DonationSubject || isList(sub.List))
}

// String is the NATS subject.
func (s Subject) String() string {
	switch s.Kind {
	case EntrySubject:
		return Delisting{s.List, s.ID}.Subject()
	case ViewsSubject:
		return Views{List: s.List, EntryID: s.ID}.Subject()
	case DonationSubject:
		return DonationRemoval{s.ID}.Subject()
	}
	return ""
}

// subjectOf is where d belongs, without building the text.
func subjectOf(d Data) Subject {
	switch d := d.(type) {
	case Entry:
		return Subject{EntrySubject, d.List, d.EntryID}
	case Delisting:
		return Subject{EntrySubject, d.List, d.EntryID}
	case Views:
		return Subject{ViewsSubject, d.List, d.EntryID}
	case Donation:
		return Subject{DonationSubject, "", d.DonationID}
	case DonationRemoval:
		return Subject{DonationSubject, "", d.DonationID}
	}
	return Subject{}
}
