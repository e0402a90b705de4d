package readmodel

import (
	"bytes"
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
// read it. All its text is one string, so a row costs the garbage collector two objects.
//
//	blob = public JSON | collation key | folded name \n folded chat id \n folded reason | keys | chat id
//
// A newline separates the folded fields. No folded text contains one, so no search matches across
// two fields. The keys are the look-alike keys of the name; each is stored only if it differs from
// the text before it (omitted). The chat id is stored only if the JSON does not contain it
// literally.
type Row struct {
	blob     string
	reported int64  // Unix nanoseconds: the key of the orders by time
	sequence uint64 // of the last change
	revision int64
	digest   Digest // without the revision

	jsonEnd, collEnd, nameEnd, chatEnd, textEnd uint32 // offsets into blob
	shapeEnd, keysEnd                           uint32 // of the look-alike keys
	chatAt                                      uint32 // where the exact chat id starts
	slot                                        uint32 // dense number within the list, given by the catalog
	chatLen                                     uint16
	idLen                                       uint8
	list                                        uint8
	filter                                      filterBits
	omitted                                     keyBits
}

// jsonIDAt is the offset of the entry id in the public JSON: {"_id":"…
const jsonIDAt = len(`{"_id":"`)

// JSON returns the entry as lists and checks show it (httpapi/CONTRACT.md#lists).
func (r *Row) JSON() string { return r.blob[:r.jsonEnd] }

// ID returns the entry id.
func (r *Row) ID() string { return r.blob[jsonIDAt : jsonIDAt+int(r.idLen)] }

// ChatID returns the chat-platform id of the entry.
func (r *Row) ChatID() string { return r.chatID() }

// Name returns the name of the entry.
func (r *Row) Name() string {
	json := r.JSON()[jsonIDAt+int(r.idLen)+len(`","name":`):]
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

func (r *Row) stateDigest() Digest { return stateDigest(r.digest, r.revision) }

// Reported returns when the entry was reported.
func (r *Row) Reported() time.Time { return time.Unix(0, r.reported).UTC() }

// Verified reports whether the entry is verified.
func (r *Row) Verified() bool { return r.filter&bitVerified != 0 }

// List returns the row's list.
func (r *Row) List() events.List { return events.Lists()[r.list] }

// Ref returns the row's RowRef in its model.
func (r *Row) Ref() RowRef { return NewRowRef(int(r.list), r.slot) }

// Text returns the texts that ranked search compares and that contain a Match: the name, and the
// reason as a visitor sees it. They are not folded.
func (r *Row) Text() (name, text string, err error) {
	p, err := r.Public()
	return p.Name, reason.Text(p.DescHTML), err
}

// Folded returns the texts that exact search compares: name and chat id, separated by a newline,
// and the reason.
func (r *Row) Folded() (names, reason string) { return r.nameAndChat(), r.foldedReason() }

func (r *Row) chatID() string     { return r.blob[r.chatAt : r.chatAt+uint32(r.chatLen)] }
func (r *Row) collation() string  { return r.blob[r.jsonEnd:r.collEnd] }
func (r *Row) foldedName() string { return r.blob[r.collEnd:r.nameEnd] }
func (r *Row) foldedChat() string { return r.blob[r.nameEnd+1 : r.chatEnd] }

// text is all that a list search reads; nameAndChat is all that a check reads.
func (r *Row) text() string         { return r.blob[r.collEnd:r.textEnd] }
func (r *Row) nameAndChat() string  { return r.blob[r.collEnd:r.chatEnd] }
func (r *Row) foldedReason() string { return r.blob[r.chatEnd+1 : r.textEnd] }

// keys returns the look-alike keys of the name.
func (r *Row) keys() lookalike.Keys {
	k := lookalike.Keys{Shape: r.blob[r.textEnd:r.shapeEnd], Folded: r.blob[r.shapeEnd:r.keysEnd]}
	if r.omitted&bitShapeIsName != 0 {
		k.Shape = r.foldedName()
	}
	if r.omitted&bitFoldedIsShape != 0 {
		k.Folded = k.Shape
	}
	return k
}

// keyBits say which look-alike keys a row omits because they equal the text before them. Most names
// have one key, and half of the keys equal the name, which leaves 18 bytes of keys an entry.
type keyBits uint8

const (
	bitShapeIsName   keyBits = 1 << iota // the folded name
	bitFoldedIsShape                     // the other key
)

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
func newRow(b []byte, e *events.Entry, seq uint64, digest Digest, from *rendering) (*Row, []byte) {
	r := &Row{
		reported: e.ReportedAt.UnixNano(), sequence: seq, revision: e.Revision, digest: digest,
		idLen: uint8(len(e.EntryID)), list: uint8(listIndex(e.List)),
		chatLen: uint16(len(e.ChatID)), filter: filterOf(e),
	}
	b = appendPublic(b, e, from.descHTML)
	r.jsonEnd = uint32(len(b))
	b = append(b, from.collation...)
	r.collEnd = uint32(len(b))
	b = append(b, from.name...)
	r.nameEnd = uint32(len(b))
	b = append(append(b, '\n'), from.chat...)
	r.chatEnd = uint32(len(b))
	b = append(append(b, '\n'), from.reason...)
	r.textEnd = uint32(len(b))
	if from.keys.Shape == from.name {
		r.omitted |= bitShapeIsName
	} else {
		b = append(b, from.keys.Shape...)
	}
	r.shapeEnd = uint32(len(b))
	if from.keys.Folded == from.keys.Shape {
		r.omitted |= bitFoldedIsShape
	} else {
		b = append(b, from.keys.Folded...)
	}
	r.keysEnd = uint32(len(b))
	if at := bytes.Index(b[:r.jsonEnd], []byte(e.ChatID)); at >= 0 {
		r.chatAt = uint32(at)
	} else {
		r.chatAt = uint32(len(b))
		b = append(b, e.ChatID...)
	}
	r.blob = string(b)
	return r, b
}

// appendPublic appends the seven members of an entry's public JSON, in the order of
// httpapi/CONTRACT.md#lists.
func appendPublic(b []byte, e *events.Entry, descHTML string) []byte {
	b = append(append(append(b, `{"_id":"`...), e.EntryID...), `","name":`...)
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
const rowHeader = 8 + 16 + 8*4 + 2 + 4

// offsets are the row's offsets into its blob, in the order in which they are stored.
func (r *Row) offsets() [8]*uint32 {
	return [...]*uint32{&r.jsonEnd, &r.collEnd, &r.nameEnd, &r.chatEnd, &r.textEnd, &r.shapeEnd, &r.keysEnd, &r.chatAt}
}

// appendRow appends the stored form of r. It omits the slot, which only has a meaning within one
// process, and sequence and revision, which every record has.
func appendRow(b []byte, r *Row) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.reported))
	b = append(b, r.digest[:]...)
	for _, offset := range r.offsets() {
		b = binary.BigEndian.AppendUint32(b, *offset)
	}
	b = binary.BigEndian.AppendUint16(b, r.chatLen)
	b = append(b, r.idLen, r.list, byte(r.filter&^bitShown), byte(r.omitted))
	return append(b, r.blob...)
}

// decodeRow is the inverse of appendRow. It copies the parts of b that it retains, and checks every
// offset.
func decodeRow(b []byte, seq uint64, revision int64) (*Row, error) {
	if len(b) < rowHeader {
		return nil, errRow
	}
	r := &Row{sequence: seq, revision: revision, reported: int64(binary.BigEndian.Uint64(b)), digest: Digest(b[8:24])}
	for i, offset := range r.offsets() {
		*offset = binary.BigEndian.Uint32(b[24+4*i:])
	}
	r.chatLen = binary.BigEndian.Uint16(b[56:])
	r.idLen, r.list, r.filter, r.omitted = b[58], b[59], filterBits(b[60]), keyBits(b[61])
	r.blob = string(b[rowHeader:])
	if !r.sane() {
		return nil, errRow
	}
	r.filter = r.filter.in(int(r.list))
	return r, nil
}

func (r *Row) sane() bool {
	end := uint32(len(r.blob))
	return r.list < events.NumLists && r.filter < bitShown && r.jsonEnd >= uint32(jsonIDAt)+uint32(r.idLen) && r.jsonEnd <= r.collEnd &&
		r.collEnd <= r.nameEnd && r.nameEnd < r.chatEnd && r.chatEnd < r.textEnd &&
		r.textEnd <= r.shapeEnd && r.shapeEnd <= r.keysEnd && r.keysEnd <= end &&
		r.chatAt <= end && end-r.chatAt >= uint32(r.chatLen) && strings.HasPrefix(r.blob, `{"_id":"`)
}
