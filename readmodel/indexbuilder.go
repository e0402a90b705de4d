package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel/textindex"
)

// indexBuilder builds a text index and makes it follow the model. One goroutine owns it.
//
// It marks what changed as unindexed, which publishes at once, and builds blocks later: a small one
// of a part's changed rows, or a large one of all its rows when that is no longer enough.
type indexBuilder struct {
	indexer *Indexer
	model   *Model

	index  indexSnapshot // its parts belong to what was published last, too
	states [events.NumLists][]partState
	begun  bool
	view   *View         // that index.sequence is of
	quiet  bool          // it brought no changes
	dir    textindex.Dir // empty: to be opened
	large  *textindex.Builder
	small  *textindex.Builder // used while large is, too
	failed time.Time          // when writing last did; zero: not since the last success

	vocabulary *textindex.Vocabulary // of new blocks; nil: none yet
	settled    int                   // its bytes when every block first had been made with it; zero: not yet

	indexed int       // rows that were put into blocks
	busy    bool      // what Indexer.Busy said
	looked  time.Time // when it was asked
	unsaved int       // large blocks that were made since the index was saved
	savedAt time.Time // when it last was, or should have been
}

// partState is what the builder knows of a part beyond what searches need.
type partState struct {
	own        bool      // unindexed has not been published, and so may be changed
	rows       int       // in the large block
	small      int       // slots in the small block
	largeBuilt time.Time // when the large block was
	lastBuilt  time.Time // when the newer of the two was
}

const (
	// largeEvery is how often a large block is built at most while it lacks less than half of its rows.
	largeEvery = 5 * time.Second
	// smallEvery is the same of a small block.
	smallEvery = time.Second / 5
	// maxSmall bounds a small block, in slots. With 1 000 changes a second all over seven parts, the
	// small blocks and the large ones take a fifth of a processor each.
	maxSmall = 1024
	// lookEvery is how often Indexer.Busy is asked.
	lookEvery = 300 * time.Millisecond
	// restEvery is how many rows are indexed without a rest: some milliseconds.
	restEvery = 512
)

// step learns from v what has changed, tells searches, and builds the block that is needed most. It
// reports whether it built one, since another may be needed.
func (b *indexBuilder) step(ctx context.Context, v *View) (more bool, err error) {
	b.follow(v)
	list, i, need := b.neediest(false)
	if need == none {
		b.index.completeAt = v.sequence
		b.renewVocabulary()
		list, i, need = b.firstOutdated()
	}
	b.publish()
	if need != now || b.waitsForDisk() {
		return false, nil
	}
	if err := b.build(ctx, v, list, i); err != nil {
		b.dir, b.failed = "", time.Now()
		return false, err
	}
	b.publish()
	return true, nil
}

// follow marks what has changed since the last view as unindexed.
func (b *indexBuilder) follow(v *View) {
	changes, ok := v.changes.since(b.index.sequence)
	b.quiet = ok && len(changes) == 0
	if !ok || !b.begun {
		b.compareRows(v)
	}
	for _, c := range changes {
		b.mark(c.ref)
	}
	b.begun, b.view, b.index.sequence = true, v, v.sequence
}

// compareRows finds what has changed by a look at every row, since the log no longer tells. It
// misses rows that are gone, which older views still show.
func (b *indexBuilder) compareRows(v *View) {
	b.index.begun = v.sequence
	v.eachRow(func(list int, slot uint32, r *Row) {
		if !b.begun || r.sequence > b.index.sequence {
			b.mark(newRowRef(list, slot))
		}
	})
}

// renewVocabulary begins another vocabulary when the present one has doubled since it was settled: half of it may be
// words of texts that are gone. Then every block is built again with the new one, while the old blocks answer.
func (b *indexBuilder) renewVocabulary() {
	switch {
	case b.vocabulary == nil:
	case b.settled == 0:
		if _, _, need := b.firstOutdated(); need == none {
			b.vocabulary.Sort()
			b.settled = b.vocabulary.Bytes()
		}
	case b.vocabulary.Bytes() > 2*b.settled+cmp.Or(b.indexer.minRenewal, 1<<20):
		b.vocabulary, b.settled = textindex.NewVocabulary(), 0
		b.large, b.small = nil, nil
	}
}

// firstOutdated returns a part whose large block was made with an earlier vocabulary.
func (b *indexBuilder) firstOutdated() (list, i int, need need) {
	for l := range b.index.lists {
		for n := range b.index.lists[l] {
			if b.outdated(l, n) {
				return l, n, now
			}
		}
	}
	return 0, 0, none
}

// outdated reports whether the part's large block was made with an earlier vocabulary.
func (b *indexBuilder) outdated(list, i int) bool {
	p := &b.index.lists[list][i]
	return p.large != nil && p.large.Vocabulary() != b.vocabulary
}

// mark makes a row unindexed.
func (b *indexBuilder) mark(ref rowRef) {
	list, i := ref.list(), int(ref.slot()/textindex.BlockLen)
	b.reach(list, i)
	p, s := &b.index.lists[list][i], &b.states[list][i]
	if !s.own {
		var own textindex.Set
		if p.unindexed != nil {
			own = *p.unindexed
		}
		p.unindexed, s.own = &own, true
	}
	if p.unindexed.Add(uint16(ref.slot() % textindex.BlockLen)) {
		p.pending++
	}
}

// reach makes the list's parts reach to number i.
func (b *indexBuilder) reach(list, i int) {
	for len(b.index.lists[list]) <= i {
		b.index.lists[list] = append(b.index.lists[list], part{})
		b.states[list] = append(b.states[list], partState{})
	}
}

// publish gives searches the index as it is now.
func (b *indexBuilder) publish() {
	snapshot := b.index
	for list := range snapshot.lists {
		snapshot.lists[list] = slices.Clone(snapshot.lists[list])
		for i := range b.states[list] {
			b.states[list][i].own = false
		}
	}
	var index textIndex = &snapshot
	b.model.text.index.Store(&index)
}

// idle waits for something to do after v.
func (b *indexBuilder) idle(ctx context.Context, v *View) {
	wait(ctx, cmp.Or(b.indexer.pause, 20*time.Millisecond))
	if b.index.completeAt == v.sequence && b.model.View() == v {
		b.large, b.small = nil, nil             // their memory is worth more than their speed
		_, _ = b.model.Await(ctx, v.sequence+1) // its error is ctx's
	}
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
func (b *indexBuilder) neediest(small bool) (list, i int, most need) {
	pending := 0
	for l := range b.index.lists {
		for n := range b.index.lists[l] {
			if small && !b.smallWillDo(l, n) {
				continue
			}
			p, need := b.index.lists[l][n].pending, b.need(l, n)
			if need > most || need == most && need != none && p > pending {
				list, i, most, pending = l, n, need, p
			}
		}
	}
	return list, i, most
}

// need grows with what the part lacks. While much changes, a large block grows by half each time, so
// that filling it costs three times what building it once does.
func (b *indexBuilder) need(list, i int) need {
	s, small := b.states[list][i], b.smallWillDo(list, i)
	switch {
	case b.index.lists[list][i].pending <= cmp.Or(b.indexer.maxPending, 32):
		return none
	case b.quiet,
		small && time.Since(s.lastBuilt) > smallEvery,
		!small && (b.lacks(list, i) > s.rows/2 || time.Since(s.largeBuilt) > largeEvery):
		return now
	default:
		return later
	}
}

// smallWillDo reports whether a small block has room for what the large one lacks.
func (b *indexBuilder) smallWillDo(list, i int) bool {
	lacks, rows := b.lacks(list, i), b.states[list][i].rows
	return lacks <= maxSmall && lacks <= rows/2 && !b.outdated(list, i)
}

// lacks returns how many rows of the part the large block does not know.
func (b *indexBuilder) lacks(list, i int) int {
	return b.index.lists[list][i].pending + b.states[list][i].small
}

// waitsForDisk reports whether writing failed a short while ago.
func (b *indexBuilder) waitsForDisk() bool {
	return !b.failed.IsZero() && time.Since(b.failed) < retryAfter
}

// build makes a new block of the part's rows in v, a view that has been followed: of those that the
// large block does not know, or of all.
func (b *indexBuilder) build(ctx context.Context, v *View, list, i int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("text index: %v", p)
		}
	}()
	into, only := b.plan(list, i)
	unindexed, rows, err := b.collect(ctx, into, v, list, i, only)
	if err != nil {
		return err
	}
	block, err := b.write(into)
	if err != nil {
		return err
	}
	changes, ok := b.view.changes.since(v.sequence)
	if !ok {
		return nil // too much has changed meanwhile; the old blocks stay
	}
	b.indexed += rows
	p, s, now := &b.index.lists[list][i], &b.states[list][i], time.Now()
	if only != nil {
		*p = part{large: p.large, small: block, inSmall: only, built: v.sequence, unindexed: unindexed}
		*s = partState{rows: s.rows, small: only.Len(), largeBuilt: s.largeBuilt, lastBuilt: now}
	} else {
		b.unsaved++
		*p = part{large: block, built: v.sequence, unindexed: unindexed}
		*s = partState{rows: rows, largeBuilt: now, lastBuilt: now}
	}
	for _, c := range changes {
		if c.ref.list() == list && int(c.ref.slot()/textindex.BlockLen) == i {
			b.mark(c.ref)
		}
	}
	return nil
}

// plan chooses the builder to use, and for a small block the rows to take: nil means all.
func (b *indexBuilder) plan(list, i int) (into *textindex.Builder, only *textindex.Set) {
	kept := &b.large
	if b.smallWillDo(list, i) {
		p := &b.index.lists[list][i]
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

// maxVocabulary bounds the vocabulary, in bytes, whatever the texts are. Made-up reasons, one word in sixty of which is
// new, take 7 bytes an entry.
func (b *indexBuilder) maxVocabulary() int {
	parts := 0
	for _, list := range b.index.lists {
		parts += len(list)
	}
	return 4<<20 + 32*textindex.BlockLen*parts
}

// collect adds the texts of the part's rows to the builder: of those in only, or of all if that is
// nil. It returns how many rows there are and which did not fit.
func (b *indexBuilder) collect(ctx context.Context, into *textindex.Builder, v *View, list, i int, only *textindex.Set) (unindexed *textindex.Set, rows int, err error) {
	into.Reset()
	begun := time.Now()
	for n := range uint16(textindex.BlockLen) {
		r := v.lists[list].rows.get(uint32(i*textindex.BlockLen + int(n)))
		if r == nil || only != nil && !only.Has(n) {
			continue
		}
		if rows++; rows%restEvery == 0 {
			b.rest(ctx, time.Since(begun))
			if only == nil {
				b.buildSmallMeanwhile(ctx)
			}
			begun = time.Now()
			if ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
		}
		if !into.Add(n, r.nameAndChat(), r.foldedReason()) {
			if unindexed == nil {
				unindexed = &textindex.Set{}
			}
			unindexed.Add(n)
		}
	}
	b.rest(ctx, time.Since(begun))
	return unindexed, rows, nil
}

// rest tells searches what has changed since, and leaves the processors to them if they, or the model, are busy.
func (b *indexBuilder) rest(ctx context.Context, worked time.Duration) {
	b.follow(b.model.View())
	b.publish()
	if time.Since(b.looked) > lookEvery {
		b.looked, b.busy = time.Now(), b.indexer.Busy == nil || b.indexer.Busy()
	}
	if b.busy || !b.quiet {
		rest(ctx, worked)
	}
}

// buildSmallMeanwhile builds a small block while a large one is being made: searches would notice
// what gathers in that time. What fails is tried again with the large one.
func (b *indexBuilder) buildSmallMeanwhile(ctx context.Context) {
	list, i, need := b.neediest(true)
	if need != now || b.waitsForDisk() {
		return
	}
	if b.build(ctx, b.view, list, i) == nil {
		b.publish()
	}
}

// write makes a block of what the builder has. The disk may take its time, or hang: see
// Indexer.Trouble.
func (b *indexBuilder) write(from *textindex.Builder) (block *textindex.Block, err error) {
	x := b.indexer
	x.writing.Store(new(time.Now()))
	defer x.writing.Store(nil)
	if b.dir == "" {
		if b.dir, err = textindex.Open(x.Dir); err != nil {
			return nil, err
		}
	}
	if block, err = b.dir.Write(from); err == nil {
		b.failed = time.Time{}
		x.trouble.Store(nil)
	}
	return block, err
}
