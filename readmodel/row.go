package readmodel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
	"github.com/go-json-experiment/json/jsontext"
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

// errRow says that a stored row is not one that this program wrote.
var errRow = errors.New("row is damaged")

const rowHeader = 8 + 16 + 8*4 + 2 + 4

// appendRow writes r but for its slot, which means nothing outside one process, and its
// sequence, which every record has.
func appendRow(b []byte, r *Row) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(r.reported))
	b = append(b, r.digest[:]...)
	for _, n := range [...]uint32{r.jsonEnd, r.collEnd, r.nameEnd, r.chatEnd, r.textEnd, r.shapeEnd, r.keysEnd, r.chatAt} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = binary.BigEndian.AppendUint16(b, r.chatLen)
	b = append(b, r.idLen, r.list, byte(r.filter&^bitShown), byte(r.alike))
	return append(b, r.blob...)
}

// decodeRow copies what it keeps of b and checks every offset.
func decodeRow(b []byte, seq uint64) (*Row, error) {
	if len(b) < rowHeader {
		return nil, errRow
	}
	r := &Row{sequence: seq, reported: int64(binary.BigEndian.Uint64(b)), digest: Digest(b[8:24])}
	for i, p := range [...]*uint32{&r.jsonEnd, &r.collEnd, &r.nameEnd, &r.chatEnd, &r.textEnd, &r.shapeEnd, &r.keysEnd, &r.chatAt} {
		*p = binary.BigEndian.Uint32(b[24+4*i:])
	}
	r.chatLen = binary.BigEndian.Uint16(b[56:])
	r.idLen, r.list, r.filter, r.alike = b[58], b[59], filterBits(b[60]), alikeBits(b[61])
	r.blob = string(b[rowHeader:])
	if !r.sane() {
		return nil, errRow
	}
	r.filter = r.filter.in(int(r.list))
	return r, nil
}

func (r *Row) sane() bool {
	end := uint32(len(r.blob))
	return r.list < numLists && r.jsonEnd >= uint32(jsonIDAt)+uint32(r.idLen) && r.jsonEnd <= r.collEnd &&
		r.collEnd <= r.nameEnd && r.nameEnd < r.chatEnd && r.chatEnd < r.textEnd &&
		r.textEnd <= r.shapeEnd && r.shapeEnd <= r.keysEnd && r.keysEnd <= end &&
		r.chatAt <= end && end-r.chatAt >= uint32(r.chatLen) && strings.HasPrefix(r.blob, `{"_id":"`)
}
