package readmodel

import (
	"encoding/binary"
	"errors"
	"strings"
)

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
