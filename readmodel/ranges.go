package readmodel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"

	"example.org/registry/events"
)

// Ranges finds shown rows by their chat id, and lists the ids by range (httpapi/CONTRACT.md#ranges). A
// range has all chat ids whose hashes begin with the same twelve bits. A client that asks for a range and looks
// up an id in it does not reveal the id.
type Ranges struct {
	rows   rowIndex // by the hash of the chat id
	lines  int      // number of lines of every range; only views have it
	counts []int    // number of different ids in each range; only the model has it, not its views
}

const (
	// RangeVersion is the prefix with which the registry and its clients hash chat ids for ranges.
	RangeVersion = "registry-id-v1"
	// NumRanges is how many ranges there are.
	NumRanges = 1 << rangeBits

	rangeBits  = 12
	rangeShift = 64 - rangeBits // a chatKey shifted right by this is the number of its range
	// rangeSuffix is how many hexadecimal digits of a hash a line shows. The line omits the first three digits, which
	// are the number of the range.
	rangeSuffix = 26
	minLines    = 32 // of a range
)

// hashChatID returns the hash of a chat id for ranges.
func hashChatID(id string) [sha256.Size]byte {
	var room [128]byte
	return sha256.Sum256(append(append(room[:0], RangeVersion+"\n"...), id...))
}

// chatKey returns the first eight bytes of the hash of a chat id, by which rows are found.
func chatKey(id string) uint64 {
	hash := hashChatID(id)
	return binary.BigEndian.Uint64(hash[:])
}

func newRanges() Ranges { return Ranges{rows: newRowIndex(), counts: make([]int, NumRanges)} }

func (x *Ranges) add(r *Row) {
	if !x.hasIDOf(r) {
		x.counts[r.chatKey>>rangeShift]++
	}
	x.rows.add(r.chatKey, r)
}

func (x *Ranges) remove(r *Row) {
	x.rows.remove(r.chatKey, r)
	if !x.hasIDOf(r) {
		x.counts[r.chatKey>>rangeShift]--
	}
}

// hasIDOf reports whether a row has the chat id of r.
func (x *Ranges) hasIDOf(r *Row) bool {
	for other := range x.rows.find(r.chatKey) {
		if other.chat == r.chat {
			return true
		}
	}
	return false
}

// copyForView returns a copy for a view.
func (x *Ranges) copyForView() Ranges {
	return Ranges{rows: x.rows.copyForView(), lines: rangeLines(slices.Max(x.counts))}
}

// rangeLines returns the number of lines for ranges of up to maxIDs ids: the next of 32, 48, 64, 96, 128, 192 …
func rangeLines(maxIDs int) int {
	n := minLines
	for maxIDs > n+n/2 {
		n *= 2
	}

	if maxIDs > n {
		return n + n/2
	}
	return n
}

// find yields the rows that have exactly this chat id.
func (x *Ranges) find(id string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		for r := range x.rows.find(chatKey(id)) {
			if r.chat == id && !yield(r) {
				return
			}
		}
	}
}

// NumLines returns how many lines every range has.
func (x *Ranges) NumLines() int { return x.lines }

// Tag returns a tag of the text that Append appends, 32 hexadecimal digits. Like ListTag it is equal
// wherever the content is equal.
func (x *Ranges) Tag(number int) string {
	return contentTag("range", hashNamed("", string(x.Append(nil, number))))
}

// Append appends the sorted lines of a range, whose number is from 0 to NumRanges-1: one for each shown chat
// id, and filler lines, so that all ranges are equally long. A line has rangeSuffix digits of the id's hash, a
// colon, the lists that show the id (listedAs, in hexadecimal), and a line feed. A filler has the hash of a text
// that does not begin with RangeVersion, so no filler matches an id.
func (x *Ranges) Append(dst []byte, number int) []byte {
	listed := map[string]listedAs{}
	for r := range x.rows.withPrefix(uint64(number)<<rangeShift, rangeBits) {
		listed[r.chat] |= r.listedAs()
	}

	lines := make([]string, 0, x.lines)
	for id, as := range listed {
		hash := hashChatID(id)
		digits := hex.EncodeToString(hash[:])
		lines = append(lines, fmt.Sprintf("%s:%02x\n", digits[rangeBits/4:][:rangeSuffix], as))
	}

	for i := 0; len(lines) < x.lines; i++ {
		hash := sha256.Sum256(fmt.Appendf(nil, "%03xpad%d", number, i))
		lines = append(lines, hex.EncodeToString(hash[:])[:rangeSuffix]+":00\n")
	}

	slices.Sort(lines) // so that fillers hide among the others
	for _, line := range lines {
		dst = append(dst, line...)
	}
	return dst
}

// listedAs has two bits for each list that shows an id: the lower one for a verified entry, the upper one for
// an unverified entry.
type listedAs byte

const _ = uint(4 - events.NumLists) // does not compile with five lists: listedAs and listBits have room for four

// listedAs returns the bit that a shown row adds for its chat id.
func (r *Row) listedAs() listedAs {
	bit := listedAs(1) << (2 * r.list)
	if !r.Verified() {
		bit <<= 1
	}
	return bit
}
