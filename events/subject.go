package events

import (
	"bytes"
	"strings"
)

// Kind is the kind of a subject. The zero value is no kind. Kinds are neither stored nor sent.
type Kind uint8

// The kinds of subject.
const (
	KindEntry Kind = iota + 1
	KindViews
	KindDonation
)

// Subject names one thing that events describe: an entry, a view total or a donation. The greatest state
// of a subject is the latest (Compare). Two subjects are equal if their texts (String) are equal.
type Subject struct {
	Kind Kind
	List List   // empty for a donation
	ID   string // entryId or donationId
}

// String returns the NATS subject: registry.<list>.<entryId>, registry.views.<list>.<entryId> or
// registry.donations.<donationId>. It is empty for the zero value.
func (s Subject) String() string {
	switch s.Kind {
	case KindEntry:
		return "registry." + string(s.List) + "." + s.ID
	case KindViews:
		return "registry.views." + string(s.List) + "." + s.ID
	case KindDonation:
		return "registry.donations." + s.ID
	}
	return ""
}

// ParseSubject is the inverse of String. For a text that is no subject the error is an *Error. The
// Subject shares the memory of s.
func ParseSubject(s string) (Subject, error) {
	if sub, ok := parseSubject(s); ok {
		return sub, nil
	}
	return Subject{}, newQuotingError("subject", "unknown subject", s)
}

func parseSubject(s string) (Subject, bool) {
	tokens, ok := strings.CutPrefix(s, "registry.")
	if !ok {
		return Subject{}, false
	}

	first, rest, _ := strings.Cut(tokens, ".")
	switch first {
	case "donations":
		return Subject{KindDonation, "", rest}, IsID(rest)
	case "views":
		list, entryID, _ := strings.Cut(rest, ".")
		return Subject{KindViews, List(list), entryID}, isList(List(list)) && IsID(entryID)
	}
	return Subject{KindEntry, List(first), rest}, isList(List(first)) && IsID(rest)
}

// Masked returns s as logs, metrics and /projection may show it: without the id of a donation
// (events/CONTRACT.md#rejection).
func (s Subject) Masked() string {
	if s.Kind == KindDonation {
		s.ID = "*"
	}
	return s.String()
}

// MaskSubject is Masked for the subject of any message. A subject that violates the contract may contain a
// donation's id, too. payload may be nil. Subjects of other streams stay unchanged.
func MaskSubject(subject string, payload []byte) string {
	if !strings.HasPrefix(subject, "registry.") {
		return subject
	}
	if strings.HasPrefix(subject, "registry.donations.") {
		return Subject{Kind: KindDonation, ID: "*"}.String()
	}

	parsed, known := parseSubject(subject)
	if !known {
		return "registry.*" // the id may be anywhere in it
	}

	// A donation may have been published on an entry's subject by mistake.
	if bytes.Contains(payload, []byte("registry.donation")) || bytes.Contains(payload, []byte("donationId")) {
		parsed.ID = "*"
	}
	return parsed.String()
}
