package readmodel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"example.org/registry/events"
)

// A range is the chat ids whose hash begins with the same twelve bits (httpapi/CONTRACT.md#ranges).
// A client queries a range to look up an id without revealing it. The tree of chat ids is ordered
// by that hash, so a range is a contiguous part of it.

const (
	// RangeVersion is the prefix that chat ids are hashed with for ranges. Clients use the same.
	RangeVersion = "registry-id-v1"
	// NumRanges is how many ranges there are.
	NumRanges = 1 << rangeBits

	rangeBits = 12
	// rangeSuffix is the number of hexadecimal digits on a line of a range, which follow those of
	// the range.
	rangeSuffix = 26
	minLines    = 32
)

// hashChatID returns the hash of a chat id in ranges.
func hashChatID(id string) [sha256.Size]byte {
	var room [128]byte
	return sha256.Sum256(append(append(room[:0], RangeVersion+"\n"...), id...))
}

// chatKey returns the part of the hash by which rows are found.
func chatKey(id string) uint64 {
	hash := hashChatID(id)
	return binary.BigEndian.Uint64(hash[:])
}

// listedAs has a bit for each way in which lists show an id: verified and not verified for scammers
// and for servers, and one for legit.
type listedAs byte

// listedAs returns the bit that the row, which is shown, adds for its chat id.
func (r *Row) listedAs() listedAs {
	bit := listedAs(1) << (2 * r.list)
	if !r.Verified() {
		bit <<= 1
	}
	return bit
}

// ranges counts the shown chat ids of each range.
type ranges struct {
	ids     cowSlice[int32]
	lines   int  // of every range
	changed bool // since lines was set
}

// add adds n to the number of ids of the range that has a hash.
func (x *ranges) add(hash uint64, n int32) {
	at := uint32(hash >> (64 - rangeBits))
	x.ids.set(at, x.ids.get(at)+n)
	x.changed = true
}

// snapshot returns a copy for a view.
func (x *ranges) snapshot() ranges {
	if x.changed || x.lines == 0 {
		most := int32(0)
		for _, ids := range x.ids.all() {
			most = max(most, ids)
		}
		x.lines, x.changed = rangeLines(int(most)), false
	}
	return ranges{ids: x.ids.snapshot(), lines: x.lines}
}

// hasChatID reports whether a shown row has the chat id of r.
func (s *state) hasChatID(r *Row) (has bool) {
	s.eachWith(s.chats, r.chatKey, func(other *Row) bool {
		has = other.chat == r.chat
		return !has
	})
	return has
}

// withChatID calls f with every shown row that has exactly this chat id.
func (v *View) withChatID(id string, f func(r *Row)) {
	v.eachWith(v.chats, chatKey(id), func(r *Row) bool {
		if r.chat == id {
			f(r)
		}
		return true
	})
}

// manyRows is how many rows of a chat id make a lookup as long as a text search.
const manyRows = 1000

// ManyWithID reports whether so many entries have this chat id that a lookup of it takes as long as a
// text search.
func (v *View) ManyWithID(id string) bool {
	n := 0
	v.eachWith(v.chats, chatKey(id), func(*Row) bool { n++; return n < manyRows })
	return n >= manyRows
}

// rangeLines returns the smallest of 32, 48, 64, 96, 128, 192 … that is at least most.
func rangeLines(most int) int {
	for n := minLines; ; n *= 2 {
		switch {
		case most <= n:
			return n
		case most <= n+n/2:
			return n + n/2
		}
	}
}

// RangeLines returns how many lines every range of the view has.
func (v *View) RangeLines() int { return v.ranges.lines }

// RangeTag returns a tag of the text that AppendRange appends, 32 hexadecimal digits. Like ListTag
// it is equal wherever the content is equal.
func (v *View) RangeTag(n int) string {
	sum := sha256.Sum256(v.AppendRange(nil, n))
	return contentTag("range", Digest(sum[:len(Digest{})]))
}

// AppendRange appends the lines of range n, from 0 to NumRanges-1, in order: one for each shown
// chat id, and filler lines, so that all ranges are equally long. A line is the suffix of a hash, a
// colon, the listedAs of the id in two hexadecimal digits, and a line feed. A filler's hash is of another
// text than any id's, so it matches no id.
func (v *View) AppendRange(dst []byte, n int) []byte {
	listed := map[string]listedAs{}
	low := uint64(n) << (64 - rangeBits)
	v.chats.Ascend(low, func(ref uint64) bool {
		if ref>>(64-rangeBits) != uint64(n) {
			return false
		}
		r := v.rowAt(ref)
		listed[r.chat] |= r.listedAs()
		return true
	})
	lines := make([]string, 0, v.ranges.lines)
	var digits [2 * sha256.Size]byte
	for id, as := range listed {
		hash := hashChatID(id)
		hex.Encode(digits[:], hash[:])
		lines = append(lines, string(digits[rangeBits/4:][:rangeSuffix])+":"+hex.EncodeToString([]byte{byte(as)})+"\n")
	}
	pad := fmt.Appendf(nil, "%03xpad", n)
	for i := 0; len(lines) < v.ranges.lines; i++ {
		hash := sha256.Sum256(strconv.AppendInt(pad, int64(i), 10))
		hex.Encode(digits[:], hash[:])
		lines = append(lines, string(digits[:rangeSuffix])+":00\n")
	}
	slices.Sort(lines)
	for _, line := range lines {
		dst = append(dst, line...)
	}
	return dst
}

const _ = uint(4 - events.NumLists) // more lists do not fit into listedAs
