package readmodel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel/textindex"
)

// SavedIndex is the text index that an earlier process has saved. A slot's text in it is known by its row's digest, so that it fits
// any model: what the model does not have is not looked for, and what the index does not have is indexed.
//
// Whoever opens one closes it once the Indexer of the model that it was given to (Model.KeepSlots) has begun with it or has ended. One
// goroutine at a time uses it; any may close it.
type SavedIndex struct {
	file  *textindex.Saved
	parts []savedPart
	slots [events.NumLists]uint32 // the first after those of its rows
}

// savedPart is what a label says: which slots of a list the block covers, and the digests of the rows in them.
type savedPart struct {
	list, number int
	digests      []byte // one after another; zero: none. As long as the last that is not
}

// textsVersion is the version of the texts that are indexed: of how rows are rendered.
func textsVersion() string { return fmt.Sprintf("rendering %d", RenderVersion) }

// OpenSavedIndex opens what an Indexer has saved in dir. It fails if there is nothing (fs.ErrNotExist) or it cannot be used;
// then the index is made anew.
func OpenSavedIndex(dir string) (*SavedIndex, error) {
	file, err := textindex.OpenSaved(dir, textsVersion())
	if err != nil {
		return nil, err
	}
	s := &SavedIndex{file: file}
	if err := s.read(); err != nil {
		s.Close()
		return nil, fmt.Errorf("text index: saved: %w", err)
	}
	return s, nil
}

// Close closes its file. It may be called twice, by any goroutine.
func (s *SavedIndex) Close() { s.file.Close() }

func (s *SavedIndex) read() error {
	filled := 0
	for _, label := range s.file.Labels() {
		p, err := decodeLabel(label)
		if err != nil {
			return err
		}
		s.parts = append(s.parts, p)
		s.slots[p.list] = max(s.slots[p.list], uint32(p.number*textindex.BlockLen+len(p.digests)/len(Digest{})))
		p.each(func(uint32, Digest) { filled++ })
	}
	// Rows that the saved index does not have get slots after the last. Without a bound those that are gone would add up.
	all := 0
	for _, slots := range s.slots {
		all += int(slots)
	}
	if spare := all - filled; spare > filled/2+textindex.BlockLen {
		return errors.New("most of its entries are gone")
	}
	return nil
}

// A label is the list (1 byte), the number of the part (4, big endian) and the digests.
const labelHead = 1 + 4

func (p *savedPart) label() []byte {
	return append(binary.BigEndian.AppendUint32([]byte{byte(p.list)}, uint32(p.number)), p.digests...)
}

func decodeLabel(b []byte) (p savedPart, err error) {
	if len(b) < labelHead || (len(b)-labelHead)%len(Digest{}) != 0 {
		return p, errors.New("a part has no label")
	}
	p = savedPart{list: int(b[0]), number: int(binary.BigEndian.Uint32(b[1:])), digests: b[labelHead:]}
	if p.list >= events.NumLists || p.number >= (1<<slotBits)/textindex.BlockLen || len(p.digests) > textindex.BlockLen*len(Digest{}) {
		return p, errors.New("a part is of no list")
	}
	return p, nil
}

// digest returns that of the row that was in a slot; zero if there was none.
func (p *savedPart) digest(slot int) (d Digest) {
	if at := slot * len(d); at < len(p.digests) {
		d = Digest(p.digests[at:])
	}
	return d
}

// each calls f with the digests of the part and their slots in the list.
func (p *savedPart) each(f func(slot uint32, d Digest)) {
	for n := range len(p.digests) / len(Digest{}) {
		if d := p.digest(n); d != (Digest{}) {
			f(uint32(p.number*textindex.BlockLen+n), d)
		}
	}
}

// KeepSlots has rows that are loaded get the slots that they have in s, and the model's Indexer begin with s. It is called before the
// first BeginBulk. Answers do not depend on slots.
func (m *Model) KeepSlots(s *SavedIndex) {
	m.saved = s
	var wanted [events.NumLists]int
	for _, p := range s.parts {
		wanted[p.list] += len(p.digests) / len(Digest{})
	}
	for list, c := range m.lists {
		c.kept, c.cells = make(map[Digest]uint32, wanted[list]), make(map[string]cell, wanted[list])
		c.slots.next = s.slots[list]
	}
	for _, p := range s.parts {
		p.each(func(slot uint32, d Digest) { m.lists[p.list].kept[d] = slot })
	}
}

// takeSlot returns the slot that a new row is to have.
func (c *catalogue) takeSlot(r *Row) uint32 {
	if slot, ok := c.kept[r.digest]; ok {
		delete(c.kept, r.digest)
		return slot
	}
	return c.slots.take()
}

// releaseKept lets other rows have the slots that were kept in vain.
func (c *catalogue) releaseKept() {
	for _, slot := range c.kept {
		c.slots.giveBack(slot)
	}
	c.kept = nil
}

// resume begins with the index that an earlier process saved.
func (b *indexBuilder) resume(s *SavedIndex, v *View) (err error) {
	defer s.Close()
	if b.dir, err = textindex.Open(b.indexer.Dir); err != nil {
		return err
	}
	vocabulary, blocks, err := s.file.Load(b.dir)
	if err != nil {
		return err
	}
	b.vocabulary, b.settled = vocabulary, vocabulary.Bytes()
	b.begun, b.view = true, v
	b.index.begun, b.index.sequence = v.sequence, v.sequence
	now := time.Now()
	for i, saved := range s.parts {
		b.reach(saved.list, saved.number)
		b.index.lists[saved.list][saved.number] = part{large: blocks[i], built: v.sequence}
		b.states[saved.list][saved.number] = partState{rows: len(saved.digests) / len(Digest{}), largeBuilt: now, lastBuilt: now}
	}
	b.markUnsaved(s, v)
	s.parts = nil // their memory
	b.indexer.saved.Store(v.sequence)
	return nil
}

// markUnsaved marks the rows that the saved index does not have, as they are, in their slots. What it has and the view does not
// shows in no answer.
func (b *indexBuilder) markUnsaved(s *SavedIndex, v *View) {
	var parts [events.NumLists][]*savedPart
	for i := range s.parts {
		p := &s.parts[i]
		for len(parts[p.list]) <= p.number {
			parts[p.list] = append(parts[p.list], &savedPart{})
		}
		parts[p.list][p.number] = p
	}
	v.eachRow(func(list int, slot uint32, r *Row) {
		at := int(slot / textindex.BlockLen)
		if at >= len(parts[list]) || parts[list][at].digest(int(slot%textindex.BlockLen)) != r.digest {
			b.mark(newRowRef(list, slot))
		}
	})
}

const (
	// saveEvery is how often the index is saved at most while the process runs: then a restart after a crash has to index what has
	// changed since.
	saveEvery = time.Minute
	// saveShare is the part of the large blocks that are new when it is.
	saveShare = 4
)

// save saves the index, if there is enough that is new. With last set it does so if there is anything. What fails costs the next
// start the time to make the index anew.
func (b *indexBuilder) save(last bool) error {
	parts, complete := 0, b.view != nil && b.index.completeAt == b.view.sequence
	for _, list := range b.index.lists {
		parts += len(list)
	}
	if b.unsaved == 0 || b.vocabulary == nil || b.dir == "" ||
		!last && (!complete || b.unsaved*saveShare < parts || time.Since(b.savedAt) < saveEvery) {
		return nil
	}
	b.savedAt = time.Now()
	b.indexer.writing.Store(new(b.savedAt))
	defer b.indexer.writing.Store(nil)
	if err := b.dir.Save(textsVersion(), b.vocabulary, b.savedBlocks()); err != nil {
		return err
	}
	b.unsaved = 0
	b.indexer.saved.Store(b.view.sequence)
	return nil
}

// savedBlocks returns the large blocks of the present vocabulary, with the digests of the rows that are in them as they are in the
// view.
func (b *indexBuilder) savedBlocks() (blocks []textindex.SavedBlock) {
	for list := range b.index.lists {
		for i := range b.index.lists[list] {
			if p := &b.index.lists[list][i]; p.large != nil && !b.outdated(list, i) {
				blocks = append(blocks, textindex.SavedBlock{Label: b.labelOf(list, i), Block: p.large})
			}
		}
	}
	return blocks
}

func (b *indexBuilder) labelOf(list, i int) []byte {
	p, rows := &b.index.lists[list][i], &b.view.lists[list].rows
	saved := savedPart{list: list, number: i}
	for n := range uint16(textindex.BlockLen) {
		r := rows.get(uint32(i*textindex.BlockLen + int(n)))
		if r == nil || p.unindexed != nil && p.unindexed.Has(n) || p.inSmall != nil && p.inSmall.Has(n) {
			continue
		}
		for len(saved.digests) < int(n)*len(r.digest) {
			saved.digests = append(saved.digests, make([]byte, len(r.digest))...)
		}
		saved.digests = append(saved.digests, r.digest[:]...)
	}
	return saved.label()
}
