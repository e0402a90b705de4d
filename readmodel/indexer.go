package readmodel

import (
	"context"
	"slices"
	"sync"
	"time"
)

// indexer makes blocks of the text index anew in a goroutine, so Apply waits for no block. A block takes 50 ms. The
// goroutine puts the block into the newest view, and ends when no block is due. Model.writing guards all fields.
type indexer struct {
	limit  int           // if there are more fresh slots, a block is due
	forget time.Duration // the longest time between a change and a call of forgetTexts

	running bool            // the goroutine runs
	tasks   sync.WaitGroup  // waits for the goroutine
	timer   *time.Timer     // calls forgetTexts; nil from that call until a view is published
	ctx     context.Context // ends the goroutine
	end     context.CancelFunc
}

func newIndexer() indexer {
	ctx, end := context.WithCancel(context.Background())
	return indexer{
		limit:  2048,          // a search reads this many fresh rows in 0.3 ms
		forget: 6 * time.Hour, // deploy/erasing.md promises a day
		ctx:    ctx, end: end,
	}
}

// Close ends the goroutine that makes the blocks of the text index, and waits for it. The model may
// still be used; its searches get slower with every change.
func (m *Model) Close() {
	x := &m.indexer

	m.writing.Lock()
	x.end()
	if x.timer != nil {
		x.timer.Stop()
	}
	m.writing.Unlock()

	x.tasks.Wait()
}

// startIndexing starts the timer of forgetTexts and, if a block is due, makeBlocks. It starts neither a second
// time. The caller holds m.writing.
func (m *Model) startIndexing() {
	x := &m.indexer
	if x.ctx.Err() != nil {
		return
	}

	if x.timer == nil {
		x.timer = time.AfterFunc(x.forget, m.forgetTexts)
	}
	if _, isDue := m.nextBlock(); isDue && !x.running {
		x.running = true
		x.tasks.Go(m.makeBlocks)
	}
}

// blockPlace says which block of which list of a model or view is meant, by its index.
type blockPlace struct{ list, block int }

// nextBlock returns the block to be made next, if a block is due. A block with a text to forget comes first. Then, if
// all lists together have too many fresh slots, the block with the most is due.
func (m *Model) nextBlock() (next blockPlace, isDue bool) {
	mostFresh := 0 // in one block
	allFresh := 0  // in all blocks
	for i, l := range m.lists {
		for n, b := range l.texts.blocks {
			if b.hasGone {
				return blockPlace{i, n}, true
			}

			allFresh += len(b.fresh)
			if len(b.fresh) > mostFresh {
				mostFresh = len(b.fresh)
				next = blockPlace{i, n}
			}
		}
	}
	return next, allFresh > m.indexer.limit
}

// forgetTexts marks every block with a row that its list no longer has. makeBlocks then makes the block anew of
// current rows.
func (m *Model) forgetTexts() {
	m.writing.Lock()
	defer m.writing.Unlock()

	m.indexer.timer = nil
	for _, l := range m.lists {
		for block := range l.texts.blocks {
			isGone := func(r *Row) bool { return r != nil && l.rows.get(r.slot) != r }
			if slices.ContainsFunc(l.texts.blocks[block].rows, isGone) {
				l.texts.blocks[block].hasGone = true
			}
		}
	}

	if !m.bulk {
		m.startIndexing()
	}
}

// makeBlocks makes blocks until none is due.
func (m *Model) makeBlocks() {
	for {
		place, source := m.beginBlock()
		if source == nil {
			return
		}

		begun := time.Now()
		made := source.newTextBlock(place.block)
		m.finishBlock(place, made, source)

		// If this block had no index, the next may have none, and searches read all rows of such a block: do not pause.
		replaced := source.texts.blocks[place.block]
		if replaced.index == nil {
			continue
		}

		// Pause twice as long as the work took, so that it takes at most a third of a CPU.
		select {
		case <-time.After(2 * time.Since(begun)):
		case <-m.indexer.ctx.Done():
		}
	}
}

// beginBlock returns the next block, and as its source a list of the newest view. source is nil if the goroutine
// has to end: no block is due, the model is closed, or EndBulk will start the goroutine again.
func (m *Model) beginBlock() (place blockPlace, source *list) {
	m.writing.Lock()
	defer m.writing.Unlock()

	place, isDue := m.nextBlock()
	if !isDue || m.indexer.ctx.Err() != nil || m.bulk {
		m.indexer.running = false
		return place, nil
	}

	// The new block will have no row that is gone by now. If forgetTexts marks the block meanwhile, the mark stays.
	m.lists[place.list].texts.blocks[place.block].hasGone = false
	return place, m.View().lists[place.list]
}

// finishBlock puts the block made into the model's own list, and into a copy of the newest view. made was made of
// source, an earlier view's list, and some rows may have changed since. finishBlock publishes the copy, but wakes no
// goroutine in Await, since the sequence is the same.
func (m *Model) finishBlock(place blockPlace, made textBlock, source *list) {
	m.writing.Lock()
	defer m.writing.Unlock()

	m.lists[place.list].replaceBlock(place.block, made, source)

	v := *m.View()
	l := *v.lists[place.list]
	l.texts = l.texts.copyForView()
	l.replaceBlock(place.block, made, source)
	v.lists[place.list] = &l
	m.view.Store(&v)
}
