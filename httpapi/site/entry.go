package site

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"strings"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// entry is what the template of that name shows of an entry.
type entry struct {
	readmodel.Public
	List   events.List
	Class  string // of its look, see class
	Link   string // of the page with this chat id's entries; empty on that page itself
	More   string // of the whole reason
	Mark   template.HTML
	Hidden bool // the name has characters that are shown as nothing
}

// class sets entries apart by what is known of them, not by list alone: a report that nobody has
// verified must not look like one that somebody has.
func class(l events.List, verified bool) string {
	switch {
	case l == events.Legit:
		return "legit"
	case verified:
		return "scam"
	default:
		return "risk"
	}
}

// Status is what is known of the entry, in a few words.
func (e *entry) Status() string { return status(e.List, e.Verified) }

func status(l events.List, verified bool) string {
	switch {
	case l == events.Legit:
		return "Zaufana osoba"
	case l == events.Servers && verified:
		return "Zweryfikowany serwer oszustów"
	case l == events.Servers:
		return "Ryzyko: serwer niezweryfikowany"
	case verified:
		return "Zweryfikowane oszustwo"
	default:
		return "Ryzyko: niezweryfikowane"
	}
}

// Accused says whether the entry says something bad of somebody.
func (e *entry) Accused() bool { return e.List != events.Legit }

// Blank says that no reason was given.
func (e *entry) Blank() bool { return strings.TrimSpace(e.DescHTML) == "" }

// Avatar is the address of a picture, "" for ids that no picture has.
func (e *entry) Avatar() string {
	for _, c := range []byte(e.ChatID) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return ""
		}
	}
	return "/api/chat/avatar/" + e.ChatID + "?size=128"
}

// piece renders an entry. The page decides later how much of the reason there is room for.
// A page that shows one entry alone reads the whole reason, others its beginning.
func (s *Site) piece(l events.List, r *readmodel.Row, link, more string, alone bool) (piece, error) {
	e, err := s.entry(l, r)
	if err != nil {
		return piece{}, err
	}
	e.Link, e.More = link, more
	var out bytes.Buffer
	if err := s.entries.Execute(&out, e); err != nil {
		return piece{}, fmt.Errorf("site: entry %s: %w", e.ID, err)
	}
	if alone {
		return newPiece(out.String(), sanitise(s.policy, e.DescHTML)), nil
	}
	read := beginning(e.DescHTML)
	reason := sanitise(s.policy, read)
	if len(read) < len(e.DescHTML) {
		reason.size = len(e.DescHTML) // more than any page shows
	}
	return newPiece(out.String(), reason), nil
}

func (s *Site) entry(l events.List, r *readmodel.Row) (*entry, error) {
	public, err := r.Public()
	if err != nil {
		return nil, fmt.Errorf("site: %w", err)
	}
	return &entry{
		Public: public, List: l, Class: class(l, public.Verified), Mark: mark,
		Hidden: hidden(public.Name),
	}, nil
}

// entryLink is the page of everything that a list has under a chat id.
func entryLink(l events.List, chatID string) string {
	return "/" + string(l) + "?id=" + url.QueryEscape(chatID)
}

// hidden says whether a name has characters that are shown as nothing or turn the text around: a
// name is to be compared by its letters.
func hidden(name string) bool { return strings.ContainsFunc(name, lookalike.Ignorable) }
