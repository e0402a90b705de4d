package readmodel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
	"example.org/registry/readmodel/reason"
)

// Row is one entry in the catalog, encoded once per change. It never changes; any goroutine may
// read it. All its texts are parts of one string, which is also their stored form (see cut).
type Row struct {
	blob      string
	json      string // as lists and checks show it
	id, chat  string // chat: the chat id
	collation string
	// text is folded name, chat id and reason, each after a newline but the first. No folded text
	// has one, so no search matches across two.
	text   string
	names  string         // of text: name and chat id, which is all that a check reads
	folded string         // of text: the name
	keys   lookalike.Keys // of the name

	reported int64  // Unix nanoseconds: the key of the orders by time
	sequence uint64 // of the last change
	revision int64
	digest   Digest // without the revision
	hash     events.Hash
	slot     uint32 // dense number within the list, given by the catalog
	list     uint8
	filter   filterBits
}

// JSON returns the entry as lists and checks show it (httpapi/CONTRACT.md#lists).
func (r *Row) JSON() string { return r.json }

// ID returns the entry id.
func (r *Row) ID() string { return r.id }

// ChatID returns the chat-platform id of the entry.
func (r *Row) ChatID() string { return r.chat }

// Name returns the name of the entry.
func (r *Row) Name() string {
	json := r.json[len(jsonStart)+len(r.id)+len(`","name":`):]
	return unquoted(json[:strings.Index(json, `,"id":"`)])
}

// ReportID returns the number of the report. It ends the public JSON.
func (r *Row) ReportID() string {
	json := r.JSON()
	return unquoted(json[strings.LastIndex(json, `,"reportId":"`)+len(`,"reportId":`) : len(json)-1])
}

// unquoted returns the text of a JSON string written by appendString.
func unquoted(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, quoted)
	return string(text)
}

// Content identifies what the row shows: it changes with every member of the entry, and with no
// repetition.
func (r *Row) Content() uint64 { return r.digest.low() }

func (r *Row) stateRank() events.Rank { return events.Rank{Revision: r.revision, Hash: r.hash} }

// Reported returns when the entry was reported.
func (r *Row) Reported() time.Time { return time.Unix(0, r.reported).UTC() }

// Verified reports whether the entry is verified.
func (r *Row) Verified() bool { return r.filter&bitVerified != 0 }

// List returns the row's list.
func (r *Row) List() events.List { return events.Lists()[r.list] }

// Ref returns the row's RowRef in its model.
func (r *Row) Ref() RowRef { return NewRowRef(int(r.list), r.slot) }

// Text returns the texts in which ranked search finds a Match: the name, and the reason as a visitor
// sees it. They are not folded.
func (r *Row) Text() (name, text string, err error) {
	p, err := r.Public()
	return p.Name, reason.Text(p.DescHTML), err
}

// Folded returns the texts that exact search compares: name and chat id, separated by a newline,
// and the reason.
func (r *Row) Folded() (names, reason string) { return r.names, r.text[len(r.names)+1:] }

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

// Public parses the row's JSON, for pages that show its parts. It takes microseconds. For
// the raw JSON, call JSON. An error means a row that this program did not write.
func (r *Row) Public() (PublicEntry, error) {
	p := PublicEntry{PrivateProofs: r.filter&bitPrivate != 0}
	if err := json.Unmarshal([]byte(r.JSON()), &p); err != nil {
		return p, fmt.Errorf("entry %s: %w", r.ID(), err)
	}
	return p, nil
}

// rendering is a Renderer's result for an entry.
type rendering struct {
	descHTML  string
	collation []byte
	name      string // folded, as the next two
	chat      string
	reason    string
	keys      lookalike.Keys // of the name
}

// newRow makes a row. It copies the row's blob out of b, which it returns for the next row.
// Separate temporary strings would have the sizes of long-lived ones, and fragment the memory.
func newRow(b []byte, e *events.Entry, rec *Record, from *rendering) (*Row, []byte) {
	r := &Row{
		reported: e.ReportedAt.UnixNano(), sequence: rec.Sequence, revision: e.Revision, digest: rec.digest, hash: rec.hash,
		list: uint8(listIndex(e.List)), filter: filterOf(e),
	}
	b = appendText(b, e.ChatID)
	b = appendText(b, string(from.collation))
	b = appendText(b, from.name, "\n", from.chat, "\n", from.reason)
	b = appendText(b, unlessEqual(from.keys.Shape, from.name))
	b = appendText(b, unlessEqual(from.keys.Folded, from.keys.Shape))
	b = appendPublic(b, e, from.descHTML)
	if !r.cut(string(b), e.EntryID) {
		panic("readmodel: a new row is damaged")
	}
	return r, b
}

// appendText appends a text of a blob, given in parts: its length and the text.
func appendText(b []byte, parts ...string) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	for _, p := range parts {
		b = append(b, p...)
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// equal stands for a look-alike key that equals the text before it, as most do. No key has a
// newline.
const equal = "\n"

func unlessEqual(key, before string) string {
	if key == before {
		return equal
	}
	return key
}

// jsonStart precedes the entry id in the public JSON.
const jsonStart = `{"_id":"`

// cut sets the texts of r, whose entry id is id, to the parts of blob. It returns false if newRow
// did not write blob.
func (r *Row) cut(blob, id string) bool {
	rest := blob
	for _, text := range [...]*string{&r.chat, &r.collation, &r.text, &r.keys.Shape, &r.keys.Folded} {
		if len(rest) < 4 {
			return false
		}
		n := binary.BigEndian.Uint32([]byte(rest[:4]))
		if rest = rest[4:]; uint64(n) > uint64(len(rest)) {
			return false
		}
		*text, rest = rest[:n], rest[n:]
	}
	name, others, isNamed := strings.Cut(r.text, "\n")
	chat, _, isWhole := strings.Cut(others, "\n")
	if !isNamed || !isWhole || !strings.HasPrefix(rest, jsonStart) || !strings.HasPrefix(rest[len(jsonStart):], id) {
		return false
	}
	r.blob, r.json, r.id = blob, rest, rest[len(jsonStart):][:len(id)]
	r.folded, r.names = name, r.text[:len(name)+1+len(chat)]
	if r.keys.Shape == equal {
		r.keys.Shape = r.folded
	}
	if r.keys.Folded == equal {
		r.keys.Folded = r.keys.Shape
	}
	return true
}

// appendPublic appends the seven members of an entry's public JSON, in the order of
// httpapi/CONTRACT.md#lists.
func appendPublic(b []byte, e *events.Entry, descHTML string) []byte {
	b = append(append(append(b, jsonStart...), e.EntryID...), `","name":`...)
	b = appendString(b, e.Name)
	b = appendString(append(b, `,"id":`...), e.ChatID)
	b = appendString(append(b, `,"descHtml":`...), descHTML)
	b = strconv.AppendBool(append(b, `,"verified":`...), e.Verified)
	b = append(b, `,"proofsId":`...)
	if e.Proofs.ID == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, e.Proofs.ID)
	}
	b = appendString(append(b, `,"reportId":`...), e.ReportID)
	return append(b, '}')
}

// appendString appends s as a JSON string. Its only error would be invalid UTF-8, which no event
// has.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// filterBits has the properties of an entry that the filters of a list test.
type filterBits uint8

const (
	bitVerified filterBits = 1 << iota
	bitProofs              // has a public proofs page
	bitPrivate             // has private proofs
	bitShown               // shown by its list: legit shows verified entries only
)

func filterOf(e *events.Entry) filterBits {
	var f filterBits
	if e.Verified {
		f |= bitVerified
	}
	if e.Proofs.ID != "" {
		f |= bitProofs
	}
	if e.Proofs.Private {
		f |= bitPrivate
	}
	return f.in(listIndex(e.List))
}

// in returns f with the bit that depends on the list.
func (f filterBits) in(list int) filterBits {
	if !events.Lists()[list].Trusted() || f&bitVerified != 0 {
		return f | bitShown
	}
	return f &^ bitShown
}

// shown reports whether the list shows the row.
func (r *Row) shown() bool { return r.filter&bitShown != 0 }

// match reports whether an entry with these bits passes the filters. The zero value, no entry,
// never does.
func (f filterBits) match(s Status, p Proofs) bool {
	return f&bitShown != 0 && f.hasStatus(s) && f.hasProofs(p)
}

func (f filterBits) hasStatus(s Status) bool {
	return s == StatusAll || (f&bitVerified != 0) == (s == StatusVerified)
}

func (f filterBits) hasProofs(p Proofs) bool {
	switch p {
	case ProofsWith:
		return f&bitProofs != 0
	case ProofsPrivate:
		return f&bitPrivate != 0
	default:
		return true
	}
}

// errRow means a stored row that this program did not write.
var errRow = errors.New("row is damaged")

// rowHeader is the size of a stored row before its blob.
const rowHeader = 8 + 16 + 16 + 2

// appendRow appends the stored form of r. It omits the slot, which only has a meaning within one
// process, and id, sequence and revision, which every record has.
func appendRow(b []byte, r *Row) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.reported))
	b = append(b, r.digest[:]...)
	b = append(b, r.hash[:]...)
	b = append(b, r.list, byte(r.filter&^bitShown))
	return append(b, r.blob...)
}

// decodeRow is the inverse of appendRow for the row of a subject. It copies the parts of b that it
// retains.
func decodeRow(b []byte, k events.Subject, seq uint64, revision int64) (*Row, error) {
	if len(b) < rowHeader || int(b[40]) != listIndex(k.List) || filterBits(b[41]) >= bitShown {
		return nil, errRow
	}
	r := &Row{sequence: seq, revision: revision, reported: int64(binary.BigEndian.Uint64(b)), digest: Digest(b[8:24]), hash: events.Hash(b[24:40]), list: b[40]}
	r.filter = filterBits(b[41]).in(int(r.list))
	if !r.cut(string(b[rowHeader:]), k.ID) {
		return nil, errRow
	}
	return r, nil
}
