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

// builder builds a text index and makes it follow the model. One goroutine owns it.
//
// It marks what changed as unindexed, which publishes at once, and builds blocks later: a small one
// of a part's changed rows, or a large one of all its rows when that is no longer enough.
type builder struct {
	path   string
	model  *readmodel.Model
	tuning tuning

	index index           // its parts belong to what was published last, too
	view  *readmodel.View // that index.sequence is of; nil: none yet
	quiet bool            // it brought no changes
	dir   textindex.Dir   // empty: to be opened
	large *textindex.Builder
	small *textindex.Builder // used while large is, too

	vocabulary *textindex.Vocabulary // of new blocks; nil: none yet
	settled    int                   // its bytes when every block first had been made with it; zero: not yet
	settledAt  time.Time             // when that was
}

// plan is what the builder knows of a part beyond what searches need.
type plan struct {
	pending    int       // how many of unindexed a new block would take in
	own        bool      // unindexed has not been published, and so may be changed
	rows       int       // in the large block
	slots      int       // in the small block
	largeBuilt time.Time // when the large block was
	lastBuilt  time.Time // when the newer of the two was
}

const (
	// largeEvery is how often a large block is built at most while it lacks less than half of its
	// rows.
	largeEvery = 5 * time.Second
	// smallEvery is the same of a small block.
	smallEvery = time.Second / 5
	// maxSmall bounds a small block, in slots. With 1,000 changes a second all over seven parts,
	// the small blocks and the large ones take a fifth of a CPU each.
	maxSmall = 1024
	// tickEvery is how many rows are indexed between two looks at the model: some milliseconds.
	tickEvery = 512
	// renewAfter is how old a vocabulary gets.
	renewAfter = 24 * time.Hour
)

func newBuilder(path string, m *readmodel.Model, t tuning) *builder {
	return &builder{path: path, model: m, tuning: t, index: index{scratch: &sync.Pool{}}}
}

// Follow is part of indexing.Index. It learns from v what has changed, tells searches, and builds
// the block that is needed most.
func (b *builder) Follow(ctx context.Context, w *indexing.Work, v *readmodel.View) (indexing.State, error) {
	b.follow(v)
	list, i, need := b.neediest(false)
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
		b.large, b.small = nil, nil // their memory is worth more than their speed
	}
	return state, nil
}

// Close is part of indexing.Index. Searches go on with what they have.
func (b *builder) Close() {}

// follow marks what has changed since the last view as unindexed.
func (b *builder) follow(v *readmodel.View) {
	changes, ok := v.ChangedSince(b.index.sequence)
	b.quiet = ok && len(changes) == 0
	if !ok || b.view == nil {
		b.compareRows(v)
	}
	for _, ref := range changes {
		b.mark(ref)
	}
	b.view, b.index.sequence = v, v.Sequence()
}

// compareRows finds what has changed by a look at every row, since the log no longer tells. It
// misses rows that are gone, which older views still show.
func (b *builder) compareRows(v *readmodel.View) {
	b.index.since = v.Sequence()
	v.Rows(func(r *readmodel.Row) bool {
		if b.view == nil || r.Sequence() > b.index.sequence {
			b.mark(r.Ref())
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

// firstOutdated returns a part whose large block was made with an earlier vocabulary.
func (b *builder) firstOutdated() (list, i int, need need) {
	for l := range b.index.lists {
		for n := range b.index.lists[l] {
			if b.outdated(&b.index.lists[l][n]) {
				return l, n, now
			}
		}
	}
	return 0, 0, none
}

// outdated reports whether the part's large block was made with an earlier vocabulary.
func (b *builder) outdated(p *part) bool {
	return p.large != nil && p.large.Vocabulary() != b.vocabulary
}

// mark makes a row unindexed.
func (b *builder) mark(ref readmodel.RowRef) {
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

// publish gives searches the index as it is now.
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

// need says how much a part needs a new block.
type need int

const (
	none  need = iota
	later      // it lacks some rows, but is about to lack more
	now
)

// neediest returns the part that needs a new block most. With small set it considers only parts for
// which a small block will do.
func (b *builder) neediest(small bool) (list, i int, most need) {
	pending := 0
	for l := range b.index.lists {
		for n := range b.index.lists[l] {
			p := &b.index.lists[l][n]
			if small && !b.smallWillDo(p) {
				continue
			}
			need := b.need(p)
			if need > most || need == most && need != none && p.pending > pending {
				list, i, most, pending = l, n, need, p.pending
			}
		}
	}
	return list, i, most
}

// need grows with what the part lacks. While much changes, a large block grows by half each time,
// so that filling it costs three times what building it once does.
func (b *builder) need(p *part) need {
	small := b.smallWillDo(p)
	switch {
	case p.pending <= cmp.Or(b.tuning.maxPending, 32):
		return none
	case b.quiet,
		small && time.Since(p.lastBuilt) > smallEvery,
		!small && (p.lacks() > p.rows/2 || time.Since(p.largeBuilt) > largeEvery):
		return now
	default:
		return later
	}
}

// smallWillDo reports whether a small block has room for what the large one lacks.
func (b *builder) smallWillDo(p *part) bool {
	return p.lacks() <= min(maxSmall, p.rows/2) && !b.outdated(p)
}

// lacks returns how many rows of the part the large block does not know.
func (p *part) lacks() int { return p.pending + p.slots }

// build makes a new block of the part's rows in v, a view that has been followed: of those that the
// large block does not know, or of all.
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
	changes, ok := b.view.ChangedSince(v.Sequence())
	if !ok {
		return nil // too much has changed meanwhile; the old blocks stay
	}
	p = &b.index.lists[list][i] // there may be more parts by now
	built := time.Now()
	if only != nil {
		*p = part{large: p.large, small: block, inSmall: only, built: v.Sequence(), unindexed: unindexed,
			plan: plan{rows: p.rows, slots: only.Len(), largeBuilt: p.largeBuilt, lastBuilt: built}}
	} else {
		*p = part{large: block, built: v.Sequence(), unindexed: unindexed, plan: plan{rows: rows, largeBuilt: built, lastBuilt: built}}
	}
	for _, ref := range changes {
		if ref.List() == list && int(ref.Slot()/textindex.BlockLen) == i {
			b.mark(ref)
		}
	}
	b.publish()
	return nil
}

// prepare chooses the builder to use, and for a small block the rows to take: nil means all.
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

// maxVocabulary bounds the vocabulary, in bytes, whatever the texts are. Made-up reasons, one word
// in sixty of them new, take 7 bytes an entry.
func (b *builder) maxVocabulary() int {
	parts := 0
	for _, list := range b.index.lists {
		parts += len(list)
	}
	return 4<<20 + 32*textindex.BlockLen*parts
}

// collect adds the texts of the rows of a part, which begins at first, to the builder: of those in
// only, or of all if that is nil. It returns how many rows there are and which did not fit.
func (b *builder) collect(ctx context.Context, w *indexing.Work, into *textindex.Builder, v *readmodel.View, first readmodel.RowRef,
	only *textindex.Set) (unindexed *textindex.Set, rows int, err error) {
	into.Reset()
	for n := range uint16(textindex.BlockLen) {
		r := v.Row(first + readmodel.RowRef(n))
		if r == nil || only != nil && !only.Has(n) {
			continue
		}
		if rows++; rows%tickEvery == 0 {
			b.meanwhile(ctx, w, only == nil)
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

// meanwhile tells searches what has changed since, and rests. While a large block is being made it
// builds a small one: searches would notice what gathers in that time. What fails is tried again
// with the large one.
func (b *builder) meanwhile(ctx context.Context, w *indexing.Work, large bool) {
	b.follow(b.model.View())
	b.publish()
	w.Tick(ctx)
	if list, i, need := b.neediest(true); large && need == now {
		_ = b.build(ctx, w, b.view, list, i)
	}
}

// write makes a block of what the builder has.
func (b *builder) write(from *textindex.Builder) (block *textindex.Block, err error) {
	if b.dir == "" {
		if b.dir, err = textindex.Open(b.path); err != nil {
			return nil, err
		}
	}
	return b.dir.Write(from)
}
