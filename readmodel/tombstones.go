package readmodel

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"example.org/registry/events"
)

// Tombstone says that an entry has left its list, and when. It holds no name, so it may be kept for
// longer than the entry. An entry that is listed again has none. Its JSON is a line of registry
// tombstones.
type Tombstone struct {
	List     events.List `json:"list"`
	EntryID  string      `json:"entryId"`
	Sequence uint64      `json:"sequence"` // stream sequence of the delisting
	Time     time.Time   `json:"time"`     // of the delisting, UTC, in whole milliseconds; zero when not known
}

// Subject names the entry.
func (t Tombstone) Subject() events.Subject {
	return events.Subject{Kind: events.KindEntry, List: t.List, ID: t.EntryID}
}

// compareTombstones orders by list and entry id.
func compareTombstones(a, b Tombstone) int {
	i, _ := a.List.Index()
	j, _ := b.List.Index()
	return cmp.Or(cmp.Compare(i, j), strings.Compare(a.EntryID, b.EntryID))
}

// SortTombstones orders all by list and entry id.
func SortTombstones(all []Tombstone) { slices.SortFunc(all, compareTombstones) }

// TombstonePrefix precedes the subject in the name that an [Inventory] gives a tombstone.
const TombstonePrefix = "tombstone of "

// hash is that of the tombstone's record.
func (t Tombstone) hash() Digest {
	b := binary.AppendUvarint(nil, t.Sequence)
	return hashState(TombstonePrefix+t.Subject().String(), binary.AppendUvarint(b, uint64(toMillis(t.Time))))
}

// toMillis returns t in milliseconds since 1970, 0 for the zero time.
func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(t.UnixMilli(), 0)
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// tombstones holds the tombstones of all lists, packed: 38 bytes for an id of 24 characters, 47 for one
// of 36 (TestTombstoneMemory); a map takes 94 with the former. Only the model's owner uses it. The zero
// value is empty and ready.
//
// A record is a byte of list and length, the id at six bits a character, the time in milliseconds in
// six bytes, and the sequence in as many as it needs. Records lie in pages, which never move; a table by
// hash, with linear probing, names them.
type tombstones struct {
	seed   maphash.Seed
	table  []uint32 // 1 + where a record begins in pages; 0: free. Its length is a power of two.
	pages  [][]byte // each of pageSize; the last one is being filled
	wasted int      // bytes of records that the table does not name any more
	counts [events.NumLists]int
}

const (
	pageSize  = 1 << 14
	keySize   = 1 + (64*6+7)/8 // at most: list, length and id
	timeSize  = 6
	minTable  = 16
	fullTable = 8 // the table doubles when less than one in fullTable is free
)

// count returns how many there are in all.
func (t *tombstones) count() (n int) {
	for _, c := range t.counts {
		n += c
	}
	return n
}

// get returns the sequence of an entry's tombstone; false if it has none.
func (t *tombstones) get(list int, id string) (sequence uint64, ok bool) {
	if len(t.table) == 0 {
		return 0, false
	}
	var buf [keySize]byte
	key := appendKey(buf[:0], list, id)
	at, found := t.find(key)
	if !found {
		return 0, false
	}
	sequence, _ = binary.Uvarint(t.record(at)[len(key)+timeSize:])
	return sequence, true
}

// set gives an entry a tombstone in place of the one that it may have. id is valid (events.IsID).
func (t *tombstones) set(list int, id string, sequence uint64, at time.Time) {
	if (t.count()+1)*fullTable > len(t.table)*(fullTable-1) {
		t.grow()
	}
	var buf [keySize + timeSize + binary.MaxVarintLen64]byte
	b := appendKey(buf[:0], list, id)
	slot, found := t.find(b)
	if found {
		t.wasted += recordSize(t.record(slot))
	} else {
		t.counts[list]++
	}
	ms := toMillis(at)
	b = append(b, byte(ms>>40), byte(ms>>32), byte(ms>>24), byte(ms>>16), byte(ms>>8), byte(ms))
	b = binary.AppendUvarint(b, sequence)
	t.table[slot] = t.append(b)
	t.tidy()
}

// remove takes the tombstone of an entry away, if it has one.
func (t *tombstones) remove(list int, id string) {
	if len(t.table) == 0 {
		return
	}
	var buf [keySize]byte
	slot, found := t.find(appendKey(buf[:0], list, id))
	if !found {
		return
	}
	t.counts[list]--
	t.wasted += recordSize(t.record(slot))
	// What follows without a gap moves up, unless it stands where its hash puts it.
	mask := len(t.table) - 1
	for next := (slot + 1) & mask; t.table[next] != 0; next = (next + 1) & mask {
		home := t.home(keyOf(t.record(next)))
		if (next-home)&mask >= (next-slot)&mask {
			t.table[slot] = t.table[next]
			slot = next
		}
	}
	t.table[slot] = 0
	t.tidy()
}

// all returns the tombstones, in no particular order.
func (t *tombstones) all() []Tombstone {
	out := make([]Tombstone, 0, t.count())
	for slot, at := range t.table {
		if at != 0 {
			out = append(out, parseTombstone(t.record(slot)))
		}
	}
	return out
}

func parseTombstone(r []byte) Tombstone {
	key := keyOf(r)
	ms := int64(0)
	for _, b := range r[len(key) : len(key)+timeSize] {
		ms = ms<<8 | int64(b)
	}
	sequence, _ := binary.Uvarint(r[len(key)+timeSize:])
	return Tombstone{List: events.Lists()[key[0]>>6], EntryID: unpackID(key), Sequence: sequence, Time: fromMillis(ms)}
}

// find returns the slot of key, or the free one where it belongs. The table has one.
func (t *tombstones) find(key []byte) (slot int, found bool) {
	mask := len(t.table) - 1
	for slot = t.home(key); t.table[slot] != 0; slot = (slot + 1) & mask {
		if bytes.HasPrefix(t.record(slot), key) {
			return slot, true
		}
	}
	return slot, false
}

func (t *tombstones) home(key []byte) int {
	return int(maphash.Bytes(t.seed, key) & uint64(len(t.table)-1))
}

// record returns the record that a slot names, and what follows it in the page.
func (t *tombstones) record(slot int) []byte {
	at := t.table[slot] - 1
	return t.pages[at/pageSize][at%pageSize:]
}

// append adds a record to the pages and returns what the table says of it.
func (t *tombstones) append(record []byte) uint32 {
	last := len(t.pages) - 1
	if last < 0 || len(t.pages[last])+len(record) > pageSize {
		t.pages = append(t.pages, make([]byte, 0, pageSize))
		last++
	}
	at := last*pageSize + len(t.pages[last])
	t.pages[last] = append(t.pages[last], record...)
	return uint32(at) + 1
}

// grow doubles the table.
func (t *tombstones) grow() {
	old := *t
	if len(t.table) == 0 {
		t.seed = maphash.MakeSeed()
	}
	t.table = make([]uint32, max(minTable, 2*len(t.table)))
	for slot, at := range old.table {
		if at != 0 {
			free, _ := t.find(keyOf(old.record(slot)))
			t.table[free] = at
		}
	}
}

// tidy packs the records anew once a quarter of the bytes is wasted.
func (t *tombstones) tidy() {
	if t.wasted <= pageSize || t.wasted <= len(t.pages)*pageSize/4 {
		return
	}
	old := *t
	t.pages, t.wasted = nil, 0
	for slot, at := range old.table {
		if at != 0 {
			r := old.record(slot)
			t.table[slot] = t.append(r[:recordSize(r)]) // old shares the table, and reads each slot before it changes
		}
	}
}

// keyOf returns the beginning of a record that tells it from others.
func keyOf(r []byte) []byte { return r[:1+packedSize(int(r[0]&63)+1)] }

func recordSize(r []byte) int {
	n := len(keyOf(r)) + timeSize
	_, sequence := binary.Uvarint(r[n:])
	return n + sequence
}

// packedSize is how many bytes n characters of an id take.
func packedSize(n int) int { return (n*6 + 7) / 8 }

// idAlphabet is what ids are made of: 64 characters, so that one takes six bits.
const idAlphabet = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

// appendKey appends list, length and characters of an id.
func appendKey(b []byte, list int, id string) []byte {
	b = append(b, byte(list)<<6|byte(len(id)-1))
	bits, n := uint(0), 0
	for i := range len(id) {
		bits, n = bits<<6|uint(idDigit(id[i])), n+6
		if n >= 8 {
			n -= 8
			b = append(b, byte(bits>>n))
		}
	}
	if n > 0 {
		b = append(b, byte(bits<<(8-n)))
	}
	return b
}

// idDigit is the place of c in idAlphabet.
func idDigit(c byte) int {
	switch {
	case c >= 'a':
		return int(c-'a') + 38
	case c == '_':
		return 37
	case c >= 'A':
		return int(c-'A') + 11
	case c >= '0':
		return int(c-'0') + 1
	}
	return 0
}

// unpackID is the inverse of appendKey.
func unpackID(key []byte) string {
	id := make([]byte, 0, 64)
	bits, n := uint(0), 0
	for _, b := range key[1:] {
		bits, n = bits<<8|uint(b), n+8
		for n >= 6 && len(id) < int(key[0]&63)+1 {
			n -= 6
			id = append(id, idAlphabet[bits>>n&63])
		}
	}
	return string(id)
}

// Tombstones returns every tombstone, in the order of list and entry id. The owner calls it, or another
// goroutine while nothing is applied.
func (m *Model) Tombstones() []Tombstone {
	all := m.tombstones.all()
	SortTombstones(all)
	return all
}

// Listed returns the stream sequence of the last change of an entry; false while it is not listed. Who
// may call it is as with Tombstones.
func (m *Model) Listed(k events.Subject) (sequence uint64, ok bool) {
	cl, _ := m.lists[listIndex(k.List)].cell(k.ID)
	if cl.row == nil {
		return 0, false
	}
	return cl.row.sequence, true
}

// ApplyOld adds the tombstones of delistings from before the checkpoint, which a store of an older
// program lacks, and returns those that it took: the others are of entries that are listed, or have a
// newer one. It leaves out records of any other kind. It publishes a view, except in bulk.
func (m *Model) ApplyOld(records []Record) (taken []Record) {
	for _, r := range records {
		if !r.Tombstone() {
			continue
		}
		if _, listed := m.Listed(r.Subject); listed {
			continue
		}
		list := listIndex(r.Subject.List)
		if known, ok := m.tombstones.get(list, r.Subject.ID); ok && known >= r.Sequence {
			continue
		}
		m.tombstones.set(list, r.Subject.ID, r.Sequence, r.delisted)
		taken = append(taken, r)
	}
	if len(taken) > 0 && !m.bulk {
		m.publish()
	}
	return taken
}
