package site

import (
	"fmt"
	"strings"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
	markdown "example.org/registry/readmodel/reason"
)

// entry is an entry for the templates.
type entry struct {
	readmodel.PublicEntry
	List     events.List
	Reported time.Time
	Class    string // see class
	Hidden   bool   // the name has invisible characters

	proofsShown bool // by /proofs/{id}
}

// class returns the style class of an entry. It depends on list and verification: an unverified
// report must not look like a verified one.
func class(l events.List, verified bool) string {
	switch {
	case l.Trusted():
		return "legit"
	case verified:
		return "scam"
	default:
		return "risk"
	}
}

// Status returns the state of the entry in a few words.
func (e *entry) Status() string { return status(e.List, e.Verified) }

func status(l events.List, verified bool) string {
	switch {
	case l.Trusted():
		return "Zaufana osoba"
	case verified:
		return "Potwierdzone"
	default:
		return "Niesprawdzone"
	}
}

// Long reports whether the name may be truncated where it first appears.
func (e *entry) Long() bool { return len(e.Name) > 60 }

// Accused reports whether the entry is an accusation.
func (e *entry) Accused() bool { return !e.List.Trusted() }

// Server reports whether the entry is a server.
func (e *entry) Server() bool { return e.List == events.Servers }

// Yours returns the question to the entry's owner.
func (e *entry) Yours() string {
	if e.Server() {
		return "To Twój serwer"
	}
	return "To Ty"
}

// Gist returns what an accused entry is accused of in a line: the first bold words of the reason,
// else its beginning.
func (e *entry) Gist() string {
	if !e.Accused() {
		return ""
	}
	return gist(e.DescHTML)
}

// Blank reports whether there is no reason.
func (e *entry) Blank() bool { return strings.TrimSpace(e.DescHTML) == "" }

// Avatar returns the address of the picture, or "" if the chat id cannot have one.
func (e *entry) Avatar() string {
	if !events.IsID(e.ChatID) {
		return ""
	}
	return "/api/chat/avatar/" + e.ChatID + "?size=128"
}

// shownName returns a name as pages show it (events/CONTRACT.md#mapping).
func shownName(name string) string {
	if !markdown.IsVisible(name) {
		return "(nazwa bez widocznych znaków)"
	}
	return markdown.Plain(name)
}

func (s *Site) entry(l events.List, r *readmodel.Row) (*entry, error) {
	public, err := r.Public()
	if err != nil {
		return nil, fmt.Errorf("site: %w", err)
	}
	hidden := lookalike.Hidden(public.Name)
	public.Name = shownName(public.Name)
	return &entry{
		PublicEntry: public, List: l, Reported: r.Reported(), Class: class(l, public.Verified),
		Hidden: hidden, proofsShown: s.cfg.Proofs,
	}, nil
}
