package readmodel

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
)

// Row is one entry as the catalogue keeps it: encoded once per change, immutable once applied.
// Everything textual lies in one string, so that a row costs the collector two objects.
//
//	blob = public JSON | collation key | folded name \n folded chat id \n folded reason | keys | chat id
//
// A newline parts the folded fields: folding leaves none in any text, so no search can
// match across two fields. The keys are the look-alike keys of the name, each only when it is not
// what stands before it (alike). The last part is there only when the chat id does not stand in
// the JSON as it is.
type Row struct {
	blob     string
	reported int64  // Unix nanoseconds: the key of the orders by time
	sequence uint64 // of the last change
	digest   Digest

	jsonEnd, collEnd, nameEnd, chatEnd, textEnd uint32 // offsets into blob
	shapeEnd, keysEnd                           uint32 // of the look-alike keys
	chatAt                                      uint32 // where the exact chat id starts
	slot                                        uint32 // dense number within the list; set by Apply
	chatLen                                     uint16
	idLen                                       uint8
	list                                        uint8
	filter                                      filterBits
	alike                                       alikeBits
}

// jsonIDAt is where the entry id stands in the public JSON: {"_id":"…
const jsonIDAt = len(`{"_id":"`)

// JSON is the public form of the entry (seed, ListEntry).
func (r *Row) JSON() string { return r.blob[:r.jsonEnd] }

// ID is the entry id.
func (r *Row) ID() string { return r.blob[jsonIDAt : jsonIDAt+int(r.idLen)] }

// Sequence is the stream sequence of the entry's last change.
func (r *Row) Sequence() uint64 { return r.sequence }

func (r *Row) chatID() string     { return r.blob[r.chatAt : r.chatAt+uint32(r.chatLen)] }
func (r *Row) collation() string  { return r.blob[r.jsonEnd:r.collEnd] }
func (r *Row) foldedName() string { return r.blob[r.collEnd:r.nameEnd] }
func (r *Row) foldedChat() string { return r.blob[r.nameEnd+1 : r.chatEnd] }

// text is all that a list search looks at; nameAndChat all that a check looks at.
func (r *Row) text() string        { return r.blob[r.collEnd:r.textEnd] }
func (r *Row) nameAndChat() string { return r.blob[r.collEnd:r.chatEnd] }

// rendering is what a Renderer made of an entry.
type rendering struct {
	descHTML  string
	collation []byte
	name      string // folded, as the next two
	chat      string
	reason    string
	keys      lookalike.Keys // of the name
}

func newRow(e *events.Entry, seq uint64, digest Digest, r *rendering) *Row {
	row := &Row{
		reported: e.ReportedAt.UnixNano(), sequence: seq, digest: digest,
		idLen: uint8(len(e.EntryID)), list: uint8(listIndex(e.List)),
		chatLen: uint16(len(e.ChatID)), filter: filterOf(e),
	}
	b := make([]byte, 0, 256+len(r.descHTML)+len(r.collation)+len(r.name)+len(r.chat)+len(r.reason))
	b = appendPublic(b, e, r.descHTML)
	row.jsonEnd = uint32(len(b))
	b = append(b, r.collation...)
	row.collEnd = uint32(len(b))
	b = append(b, r.name...)
	row.nameEnd = uint32(len(b))
	b = append(append(b, '\n'), r.chat...)
	row.chatEnd = uint32(len(b))
	b = append(append(b, '\n'), r.reason...)
	row.textEnd = uint32(len(b))
	b = row.appendKeys(b, r)
	if at := bytes.Index(b[:row.jsonEnd], []byte(e.ChatID)); at >= 0 {
		row.chatAt = uint32(at)
	} else {
		row.chatAt = uint32(len(b))
		b = append(b, e.ChatID...)
	}
	row.blob = string(b)
	return row
}

// appendPublic appends the seven members of a ListEntry, in the seed's order.
func appendPublic(b []byte, e *events.Entry, descHTML string) []byte {
	b = append(append(append(b, `{"_id":"`...), e.EntryID...), `","name":`...)
	b = appendString(b, e.Name)
	b = appendString(append(b, `,"id":`...), e.ChatID)
	b = appendString(append(b, `,"descHtml":`...), descHTML)
	b = append(b, `,"verified":`...)
	b = appendBool(b, e.Verified)
	b = append(b, `,"proofsId":`...)
	if e.Proofs.ID == "" {
		b = append(b, "null"...)
	} else {
		b = appendString(b, e.Proofs.ID)
	}
	b = appendString(append(b, `,"reportId":`...), e.ReportID)
	return append(b, '}')
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, "true"...)
	}
	return append(b, "false"...)
}

// appendString quotes s, which is valid UTF-8: the only error there is cannot happen.
func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
