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
// It marks changed rows as unindexed, which publishes at once, and builds blocks later: a small
// block of a part's changed rows, or a large block of all its rows if a small one no longer
// suffices.
type builder struct {
	path   string
	model  *readmodel.Model
	tuning tuning

	index index           // its parts are shared with the last published index
	view  *readmodel.View // the view of index.version; nil before the first one
	quiet bool            // the last view brought no changes
	dir   textindex.Dir   // empty until it is opened
	large *textindex.Builder
	small *textindex.Builder // used while large is in use, too

	vocabulary *textindex.Vocabulary // of new blocks; nil at first
	settled    int                   // its bytes when every block first had been made with it; zero: not yet
	settledAt  time.Time             // when that was
}

// plan holds the builder's data about a part, which searches do not need.
type plan struct {
	pending    int       // number of unindexed rows that a new block would take in
	own        bool      // unindexed is not published yet, so it may be changed
	rows       int       // in the large block
	slots      int       // in the small block
	largeBuilt time.Time // when the large block was built
	lastBuilt  time.Time // when the newer of the two was built
}

const (
	// largeEvery is the minimum time between two large blocks of a part while they lack less than
	// half of its rows.
	largeEvery = 5 * time.Second
	// smallEvery is the minimum time between two small blocks of a part.
	smallEvery = time.Second / 5
	// maxSmall bounds a small block, in slots. With 1,000 changes a second spread over seven parts,
	// small and large blocks take a fifth of a CPU each.
	maxSmall = 1024
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
	list, i, need := b.mostUrgent(false)
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
		b.large, b.small = nil, nil // releases their memory; the next blocks make them again
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
		b.large, b.small = nil, nil
	}
}

// firstOutdated returns a part whose large block was built with an earlier vocabulary.
func (b *builder) firstOutdated() (list, i int, need urgency) {
	for l := range b.index.lists {
		for n := range b.index.lists[l] {
			if b.outdated(&b.index.lists[l][n]) {
				return l, n, now
			}
		}
	}
	return 0, 0, none
}

// outdated reports whether the part's large block was built with an earlier vocabulary.
func (b *builder) outdated(p *part) bool {
	return p.large != nil && p.large.Vocabulary() != b.vocabulary
}

// markChanged marks a row as unindexed.
func (b *builder) markChanged(ref readmodel.RowRef) {
	parts, i := &b.index.lists[ref.List()], int(ref.Slot()/textindex.BlockLen)
	for len(*parts) <= i {
		*parts = append(*parts, part{})
	}
	p := &(*parts)[i]
	if !p.own {
		var own textindex.Set
		if p.unindexed != nil {
			own = *p.unindexed
		}
		p.unindexed, p.own = &own, true
	}
	if p.unindexed.Add(uint16(ref.Slot() % textindex.BlockLen)) {
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

// mostUrgent returns the part with the most urgent need. With small set, it considers only parts for
// which a small block suffices.
func (b *builder) mostUrgent(small bool) (list, i int, most urgency) {
	pending := 0
	for l := range b.index.lists {
		for n := range b.index.lists[l] {
			p := &b.index.lists[l][n]
			if small && !b.smallWillDo(p) {
				continue
			}
			need := b.urgencyOf(p)
			if need > most || need == most && need != none && p.pending > pending {
				list, i, most, pending = l, n, need, p.pending
			}
		}
	}
	return list, i, most
}

// urgencyOf grows with the number of rows that the part lacks. While many rows change, a large block
// grows by half each time. Filling it then costs three times as much as building it once.
func (b *builder) urgencyOf(p *part) urgency {
	small := b.smallWillDo(p)
	switch {
	case p.pending <= cmp.Or(b.tuning.maxPending, 32):
		return none
	case b.quiet,
		small && time.Since(p.lastBuilt) > smallEvery,
		!small && (p.missing() > p.rows/2 || time.Since(p.largeBuilt) > largeEvery):
		return now
	default:
		return later
	}
}

// smallWillDo reports whether a small block has room for the rows that the large one lacks.
func (b *builder) smallWillDo(p *part) bool {
	return p.missing() <= min(maxSmall, p.rows/2) && !b.outdated(p)
}

// missing returns the number of the part's rows that are not in its large block.
func (p *part) missing() int { return p.pending + p.slots }

// build builds a new block of the part's rows in v, a view that was followed: either the rows that
// the large block lacks, or all.
func (b *builder) build(ctx context.Context, w *indexing.Work, v *readmodel.View, list, i int) error {
	p := &b.index.lists[list][i]
	into, only := b.prepare(p)
	unindexed, rows, err := b.collect(ctx, w, into, v, readmodel.NewRowRef(list, uint32(i)*textindex.BlockLen), only)
	if err != nil {
		return err
	}
	block, err := b.write(into)
	if err != nil {
		b.dir = ""
		return err
	}
	changes, ok := b.view.ChangedSince(v.Version())
	if !ok {
		return nil // too much has changed since; the old blocks stay
	}
	p = &b.index.lists[list][i] // parts may have been added since
	built := time.Now()
	if only != nil {
		*p = part{large: p.large, small: block, inSmall: only, built: v.Version(), unindexed: unindexed,
			plan: plan{rows: p.rows, slots: only.Len(), largeBuilt: p.largeBuilt, lastBuilt: built}}
	} else {
		*p = part{large: block, built: v.Version(), unindexed: unindexed, plan: plan{rows: rows, largeBuilt: built, lastBuilt: built}}
	}
	for _, ref := range changes {
		if ref.List() == list && int(ref.Slot()/textindex.BlockLen) == i {
			b.markChanged(ref)
		}
	}
	b.publish()
	return nil
}

// prepare chooses the builder, and for a small block the rows. If only is nil, the block has all
// rows.
func (b *builder) prepare(p *part) (into *textindex.Builder, only *textindex.Set) {
	kept := &b.large
	if b.smallWillDo(p) {
		kept, only = &b.small, &textindex.Set{}
		for _, set := range []*textindex.Set{p.inSmall, p.unindexed} {
			if set != nil {
				only.Or(set)
			}
		}
	}
	if b.vocabulary == nil {
		b.vocabulary = textindex.NewVocabulary()
	}
	if *kept == nil {
		*kept = &textindex.Builder{Vocabulary: b.vocabulary}
	}
	(*kept).MaxVocabulary = b.maxVocabulary()
	return *kept, only
}

// maxVocabulary bounds the vocabulary, in bytes, regardless of the texts. Made-up reasons, with one
// new word in sixty, take 7 bytes an entry.
func (b *builder) maxVocabulary() int {
	parts := 0
	for _, list := range b.index.lists {
		parts += len(list)
	}
	return 4<<20 + 32*textindex.BlockLen*parts
}

// collect adds texts of a part to the builder: of the rows in subset, or of all rows if subset is
// nil. first is the part's first slot. collect returns the number of rows and the rows that did not
// fit.
func (b *builder) collect(ctx context.Context, w *indexing.Work, into *textindex.Builder, v *readmodel.View, first readmodel.RowRef,
	subset *textindex.Set) (unindexed *textindex.Set, rows int, err error) {
	into.Reset()
	for n := range uint16(textindex.BlockLen) {
		r := v.Row(first + readmodel.RowRef(n))
		if r == nil || subset != nil && !subset.Has(n) {
			continue
		}
		if rows++; rows%tickEvery == 0 {
			b.meanwhile(ctx, w, subset == nil)
			if ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
		}
		if names, reason := r.Folded(); !into.Add(n, names, reason) {
			if unindexed == nil {
				unindexed = &textindex.Set{}
			}
			unindexed.Add(n)
		}
	}
	return unindexed, rows, nil
}

// meanwhile publishes the changes since, and sleeps. While a large block is being built, it builds
// a small one, because unindexed rows gathered in that time would slow searches. If that fails, the
// large block has these rows, too.
func (b *builder) meanwhile(ctx context.Context, w *indexing.Work, large bool) {
	b.follow(b.model.View())
	b.publish()
	w.Tick(ctx)
	if list, i, need := b.mostUrgent(true); large && need == now {
		_ = b.build(ctx, w, b.view, list, i)
	}
}

// write makes a block of the builder's texts.
func (b *builder) write(from *textindex.Builder) (block *textindex.Block, err error) {
	if b.dir == "" {
		if b.dir, err = textindex.Open(b.path); err != nil {
			return nil, err
		}
	}
	return b.dir.Write(from)
}
