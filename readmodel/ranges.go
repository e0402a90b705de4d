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

// chatKey returns the part of the hash that orders the tree of chat ids.
func chatKey(id string) uint64 { return keyOf(hashChatID(id)) }

func keyOf(hash [sha256.Size]byte) uint64 { return binary.BigEndian.Uint64(hash[:]) }

// listedAs has a bit for each way in which lists show an id: verified and not verified for scammers
// and for servers, and one for legit.
type listedAs byte

// listedAs returns the bits that the row adds for its chat id.
func (r *Row) listedAs() listedAs {
	if !r.shown() {
		return 0
	}
	bit := listedAs(1) << (2 * r.list)
	if !r.Verified() {
		bit <<= 1
	}
	return bit
}

// rangeSum is the owner's summary of a range: enough to tell whether it has changed, and how long
// it is.
type rangeSum struct {
	digest Digest // of the shown ids and their listedAs
	ids    int32
}

// rangeSums holds the sums of all ranges. The zero value has those of an empty registry.
type rangeSums struct {
	sums    cowSlice[rangeSum]
	lines   int // the same for every range
	changed bool
}

// set changes the listedAs of the chat id with this hash from was to is.
func (s *rangeSums) set(hash [sha256.Size]byte, was, is listedAs) {
	if was == is {
		return
	}
	n := uint32(binary.BigEndian.Uint64(hash[:]) >> (64 - rangeBits))
	sum := s.sums.get(n)
	if was != 0 {
		sum.digest.sub(listedDigest(hash, was))
		sum.ids--
	}
	if is != 0 {
		sum.digest.Add(listedDigest(hash, is))
		sum.ids++
	}
	s.sums.set(n, sum)
	s.changed = true
}

func listedDigest(hash [sha256.Size]byte, as listedAs) Digest {
	sum := sha256.Sum256(append(hash[:], byte(as)))
	return Digest(sum[:len(Digest{})])
}

func (s *rangeSums) snapshot() rangeSums {
	if s.changed || s.lines == 0 {
		most := int32(0)
		for _, c := range s.sums.chunks {
			for i := range c.values {
				most = max(most, c.values[i].ids)
			}
		}
		s.lines, s.changed = rangeLines(int(most)), false
	}
	return rangeSums{sums: s.sums.snapshot(), lines: s.lines}
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
func (v *View) RangeLines() int { return v.chatIDs.ranges.lines }

// RangeTag returns a tag of the text that AppendRange appends, 32 hexadecimal digits. Like ListTag
// it is equal wherever the content is equal.
func (v *View) RangeTag(n int) string {
	return contentTag(fmt.Sprintf("range %d %d", n, v.chatIDs.ranges.lines), v.chatIDs.ranges.sums.get(uint32(n)).digest)
}

// AppendRange appends the lines of range n, from 0 to NumRanges-1, in order: one for each shown
// chat id, and filler lines, so that all ranges are equally long. A line is the suffix of a hash, a
// colon, the listedAs of the id in two hexadecimal digits, and a line feed. A filler's hash is of another
// text than any id's, so it matches no id.
func (v *View) AppendRange(dst []byte, n int) []byte {
	listed := map[string]listedAs{}
	low := uint64(n) << (64 - rangeBits)
	v.chatIDs.tree.Range(low, low+1<<(64-rangeBits)-1, func(n uint32) {
		r := v.Row(RowRef(n))
		listed[r.ChatID()] |= r.listedAs()
	})
	lines := make([]string, 0, v.chatIDs.ranges.lines)
	var digits [2 * sha256.Size]byte
	for id, as := range listed {
		if as != 0 {
			hash := hashChatID(id)
			hex.Encode(digits[:], hash[:])
			lines = append(lines, string(digits[rangeBits/4:][:rangeSuffix])+":"+hex.EncodeToString([]byte{byte(as)})+"\n")
		}
	}
	pad := fmt.Appendf(nil, "%03xpad", n)
	for i := 0; len(lines) < v.chatIDs.ranges.lines; i++ {
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
