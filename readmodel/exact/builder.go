package exact

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"example.org/registry/readmodel"
	"example.org/registry/readmodel/exact/textindex"
	"example.org/registry/readmodel/indexing"
)

// builder builds a text index and keeps it up to date with the model. One goroutine owns it.
//
// It marks changed rows as unindexed, which publishes at once, and builds the blocks of parts with
// many of them later.
type builder struct {
	path   string
	model  *readmodel.Model
	tuning tuning

	index index              // its parts are shared with the last published index
	view  *readmodel.View    // the view of index.version; nil before the first one
	quiet bool               // the last view brought no changes
	dir   textindex.Dir      // empty until it is opened
	texts *textindex.Builder // nil if it was released

	vocabulary *textindex.Vocabulary // of new blocks; nil at first
	settled    int                   // its bytes when every block first had been made with it; zero: not yet
	settledAt  time.Time             // when that was
}

// plan holds the builder's data about a part, which searches do not need.
type plan struct {
	pending int  // number of unindexed rows that a new block would take in
	own     bool // unindexed is not published yet, so it may be changed
	rows    int  // in the block
}

const (
	// fewPending is how many unindexed rows of a part are left to searches, and manyPending how many
	// while more of them are changing.
	fewPending, manyPending = 32, 2048
	// tickEvery is how many rows are indexed, in some milliseconds, before the builder checks the
	// model.
	tickEvery = 512
	// renewAfter is how old a vocabulary gets.
	renewAfter = 24 * time.Hour
)

func newBuilder(path string, m *readmodel.Model, t tuning) *builder {
	return &builder{path: path, model: m, tuning: t, index: index{scratch: &sync.Pool{}}}
}

// Follow implements indexing.Index. It marks the changes of v, publishes them, and builds the block
// that is needed most.
func (b *builder) Follow(ctx context.Context, w *indexing.Work, v *readmodel.View) (indexing.State, error) {
	b.follow(v)
	list, i, need := b.mostUrgent()
	state := indexing.Waiting
	if need == none {
		b.renewVocabulary()
		if list, i, need = b.firstOutdated(); need == none {
			state = indexing.Complete
		}
	}
	b.publish()
	switch {
	case need == now:
		return indexing.Working, b.build(ctx, w, v, list, i)
	case state == indexing.Complete && b.quiet:
		b.texts = nil // releases its memory; the next block makes it again
	}
	return state, nil
}

// Close implements indexing.Index. Searches go on with the published index.
func (b *builder) Close() {}

// follow marks the changes since the last view as unindexed.
func (b *builder) follow(v *readmodel.View) {
	changes, ok := v.ChangedSince(b.index.version)
	b.quiet = ok && len(changes) == 0
	if !ok || b.view == nil {
		b.compareRows(v)
	}
	for _, ref := range changes {
		b.markChanged(ref)
	}
	b.view, b.index.version = v, v.Version()
}

// compareRows finds changes by scanning every row, once the log no longer has them. It misses
// removed rows, which older views still show.
func (b *builder) compareRows(v *readmodel.View) {
	b.index.since = v.Version()
	v.Rows(func(r *readmodel.Row) bool {
		if b.view == nil || b.view.Row(r.Ref()) != r {
			b.markChanged(r.Ref())
		}
		return true
	})
}

// renewVocabulary begins another vocabulary when the present one has doubled since it was settled,
// since half of it may be words of texts that are gone, and after renewAfter, since one of them may
// be a name. Then every block is built again with the new one, while the old blocks answer.
func (b *builder) renewVocabulary() {
	switch {
	case b.vocabulary == nil:
	case b.settled == 0:
		if _, _, need := b.firstOutdated(); need == none {
			b.vocabulary.Sort()
			b.settled, b.settledAt = b.vocabulary.Bytes(), time.Now()
		}
	case b.vocabulary.Bytes() > 2*b.settled+cmp.Or(b.tuning.minRenewal, 1<<20), time.Since(b.settledAt) > cmp.Or(b.tuning.renewAfter, renewAfter):
		b.vocabulary, b.settled = textindex.NewVocabulary(), 0
		b.texts = nil
	}
}

// firstOutdated returns a part whose block was built with an earlier vocabulary.
func (b *builder) firstOutdated() (list, i int, need urgency) {
	for l := range b.index.lists {
		for n := range b.index.lists[l] {
			if block := b.index.lists[l][n].block; block != nil && block.Vocabulary() != b.vocabulary {
				return l, n, now
			}
		}
	}
	return 0, 0, none
}

// markChanged marks a row as unindexed.
func (b *builder) markChanged(ref readmodel.RowRef) {
	parts, i := &b.index.lists[ref.List()], int(ref.Slot()/readmodel.BlockLen)
	for len(*parts) <= i {
		*parts = append(*parts, part{})
	}
	p := &(*parts)[i]
	if !p.own {
		var own readmodel.Slots
		if p.unindexed != nil {
			own = *p.unindexed
		}
		p.unindexed, p.own = &own, true
	}
	if p.unindexed.Add(uint16(ref.Slot() % readmodel.BlockLen)) {
		p.pending++
	}
}

// publish publishes the index for searches.
func (b *builder) publish() {
	published := b.index
	for list, parts := range published.lists {
		for i := range parts {
			parts[i].own = false
		}
		published.lists[list] = slices.Clone(parts)
	}
	b.model.UseTextIndex(&published)
}

// urgency is how urgently a part needs a new block.
type urgency int

const (
	none  urgency = iota
	later         // it lacks some rows and will soon lack more
	now
)

// mostUrgent returns the part with the most urgent need.
func (b *builder) mostUrgent() (list, i int, most urgency) {
	pending := 0
	for l := range b.index.lists {
		for n := range b.index.lists[l] {
			p := &b.index.lists[l][n]
			need := b.urgencyOf(p)
			if need > most || need == most && need != none && p.pending > pending {
				list, i, most, pending = l, n, need, p.pending
			}
		}
	}
	return list, i, most
}

// urgencyOf grows with the number of rows that the part lacks. While rows are added, a block grows by
// half each time: filling it then costs about four times as much as building it once.
func (b *builder) urgencyOf(p *part) urgency {
	switch {
	case p.pending <= cmp.Or(b.tuning.maxPending, fewPending):
		return none
	case b.quiet, p.pending > min(manyPending, p.rows/2):
		return now
	default:
		return later
	}
}

// build builds a new block of the part's rows in v, a view that was followed.
func (b *builder) build(ctx context.Context, w *indexing.Work, v *readmodel.View, list, i int) error {
	if b.vocabulary == nil {
		b.vocabulary = textindex.NewVocabulary()
	}
	if b.texts == nil {
		b.texts = &textindex.Builder{Vocabulary: b.vocabulary}
	}
	b.texts.MaxVocabulary = b.maxVocabulary()
	unindexed, rows, err := b.collect(ctx, w, v, readmodel.NewRowRef(list, uint32(i)*readmodel.BlockLen))
	if err != nil {
		return err
	}
	block, err := b.write()
	if err != nil {
		b.dir = ""
		return err
	}
	changes, ok := b.view.ChangedSince(v.Version())
	if !ok {
		return nil // too much has changed since; the old block stays
	}
	b.index.lists[list][i] = part{block: block, built: v.Version(), unindexed: unindexed, plan: plan{rows: rows}}
	for _, ref := range changes {
		if ref.List() == list && int(ref.Slot()/readmodel.BlockLen) == i {
			b.markChanged(ref)
		}
	}
	b.publish()
	return nil
}

// maxVocabulary bounds the vocabulary, in bytes, regardless of the texts. Made-up reasons, with one
// new word in sixty, take 7 bytes an entry.
func (b *builder) maxVocabulary() int {
	parts := 0
	for _, list := range b.index.lists {
		parts += len(list)
	}
	return 4<<20 + 32*readmodel.BlockLen*parts
}

// collect adds the texts of a part's rows to the builder's. first is the part's first slot. collect
// returns the number of rows and the rows that did not fit. Meanwhile it publishes what changes.
func (b *builder) collect(ctx context.Context, w *indexing.Work, v *readmodel.View, first readmodel.RowRef) (unindexed *readmodel.Slots, rows int, err error) {
	b.texts.Reset()
	for n := range uint16(readmodel.BlockLen) {
		r := v.Row(first + readmodel.RowRef(n))
		if r == nil {
			continue
		}
		if rows++; rows%tickEvery == 0 {
			b.follow(b.model.View())
			b.publish()
			w.Tick(ctx)
			if ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
		}
		if names, reason := r.Folded(); !b.texts.Add(n, names, reason) {
			if unindexed == nil {
				unindexed = &readmodel.Slots{}
			}
			unindexed.Add(n)
		}
	}
	return unindexed, rows, nil
}

// write makes a block of the builder's texts.
func (b *builder) write() (block *textindex.Block, err error) {
	if b.dir == "" {
		if b.dir, err = textindex.Open(b.path); err != nil {
			return nil, err
		}
	}
	return b.dir.Write(b.texts)
}
