package readmodel

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
	"example.org/registry/readmodel/reason"
)

// Row is one entry, encoded once per change. It never changes; any goroutine may read it.
type Row struct {
	json      string // as lists and checks show it
	id, chat  string // the entry id and the chat id
	collation string // what the order by name compares
	// text is the folded name, chat id and reason, with a line feed between two. No folded text has a line feed,
	// so no match reaches from one folded text into the next.
	text   string
	names  string         // the part of text with the name and the chat id, which a check reads
	folded string         // the part of text with the name
	keys   lookalike.Keys // of the name

	reported int64  // Unix nanoseconds: the key of the orders by time
	chatKey  uint64 // of the chat id
	revision int64
	digest   Digest // without the revision
	hash     events.Hash
	slot     uint32 // of a shown row: its number in the list (list.rows), which the model chooses
	list     uint8  // position in events.Lists
	filter   filterBits
	removed  bool // a tombstone: only id, list, revision and hash are set
}

// JSON returns the entry as lists and checks show it (httpapi/CONTRACT.md#lists).
func (r *Row) JSON() string { return r.json }

// ID returns the entry id.
func (r *Row) ID() string { return r.id }

// ChatID returns the chat-platform id of the entry.
func (r *Row) ChatID() string { return r.chat }

// Name returns the name of the entry.
func (r *Row) Name() string { return r.textBetween(`,"name":`, `,"id":`) }

// ReportID returns the number of the report.
func (r *Row) ReportID() string {
	start := strings.LastIndex(r.json, `,"reportId":`) + len(`,"reportId":`)
	return unquoteJSON(r.json[start : len(r.json)-1])
}

// Text returns the texts in which ranked search finds a Match: the name, and the reason as a visitor
// sees it. They are not folded.
func (r *Row) Text() (name, text string) {
	return r.Name(), reason.Text(r.textBetween(`,"descHtml":`, `,"verified":`))
}

// textBetween returns the text of the JSON string between before and after. Both have quotes, and a JSON
// string escapes quotes, so neither occurs inside a string.
func (r *Row) textBetween(before, after string) string {
	start := strings.Index(r.json, before) + len(before)
	size := strings.Index(r.json[start:], after)
	return unquoteJSON(r.json[start : start+size])
}

// unquoteJSON returns the text of a JSON string in the public JSON.
func unquoteJSON(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}

	text, _ := jsontext.AppendUnquote(nil, quoted)
	return string(text)
}

// Reported returns when the entry was reported.
func (r *Row) Reported() time.Time { return time.Unix(0, r.reported).UTC() }

// Verified reports whether the entry is verified.
func (r *Row) Verified() bool { return r.filter&bitVerified != 0 }

// List returns the row's list.
func (r *Row) List() events.List { return events.Lists()[r.list] }

// Passes reports whether the row's list shows it and it passes the filters.
func (r *Row) Passes(s Status, p Proofs) bool { return r.filter.matchesFilters(s, p) }

// EntryTag returns a tag of the public content of r without its view total, 32 hexadecimal digits. Like ListTag
// it is equal wherever the content is equal.
func (r *Row) EntryTag() string { return contentTag("entry", r.digest) }

// isShown reports whether the list shows the row.
func (r *Row) isShown() bool { return r.filter&bitShown != 0 }

func (r *Row) stateRank() events.Rank {
	return events.Rank{Revision: r.revision, Removal: r.removed, Hash: r.hash}
}

func (r *Row) foldedChat() string { return r.names[len(r.folded)+1:] }

// PublicEntry is the public part of an entry: the members of the public JSON, and whether there are
// private proofs, which lists can be filtered by.
type PublicEntry struct {
	ID       string  `json:"_id"`
	Name     string  `json:"name"`
	ChatID   string  `json:"id"`
	DescHTML string  `json:"descHtml"`
	Verified bool    `json:"verified"`
	ProofsID *string `json:"proofsId"`
	ReportID string  `json:"reportId"`

	PrivateProofs bool `json:"-"`
}

// Public parses the row's JSON, for pages that show its parts. Parsing takes microseconds.
func (r *Row) Public() PublicEntry {
	p := PublicEntry{PrivateProofs: r.filter&bitPrivate != 0}
	_ = json.Unmarshal([]byte(r.json), &p) // marshalPublic has made the JSON
	return p
}

// jsonStart precedes the entry id in the public JSON.
const jsonStart = `{"_id":"`

// marshalPublic returns the public JSON of an entry. An entry id needs no escaping (events.IsID).
func marshalPublic(e *events.Entry, descHTML string) []byte {
	p := PublicEntry{ID: e.EntryID, Name: e.Name, ChatID: e.ChatID, DescHTML: descHTML, Verified: e.Verified, ReportID: e.ReportID}
	if e.Proofs.ID != "" {
		p.ProofsID = &e.Proofs.ID
	}

	public, _ := json.Marshal(p) // fails only on invalid UTF-8, which no event has
	return public
}

// filterBits has the properties of an entry that the filters of a list test. Zero is for a slot without an entry.
type filterBits uint8

const (
	bitVerified filterBits = 1 << iota
	bitProofs              // has a public proofs page
	bitPrivate             // has private proofs
	bitShown               // shown by its list: legit shows verified entries only
)

func filterOf(e *events.Entry) (f filterBits) {
	if e.Verified {
		f |= bitVerified
	}
	if e.Proofs.ID != "" {
		f |= bitProofs
	}
	if e.Proofs.Private {
		f |= bitPrivate
	}

	if e.Verified || !e.List.Trusted() {
		f |= bitShown
	}
	return f
}

// matchesFilters reports whether an entry with these bits is shown and passes the filters.
func (f filterBits) matchesFilters(s Status, p Proofs) bool {
	hasStatus := true
	switch s {
	case StatusVerified:
		hasStatus = f&bitVerified != 0
	case StatusRisk:
		hasStatus = f&bitVerified == 0
	}

	hasProofs := true
	switch p {
	case ProofsWith:
		hasProofs = f&bitProofs != 0
	case ProofsPrivate:
		hasProofs = f&bitPrivate != 0
	}
	return f&bitShown != 0 && hasStatus && hasProofs
}
