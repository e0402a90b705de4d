package readmodel

import (
	"context"
	"slices"
	"sync"
	"time"
)

// indexer decides when a block of the text index is made anew. Its goroutine takes 50 ms to make a block, and
// puts the block into the newest view, so Apply waits for no block. The goroutine ends when no block is
// due. Model.writing guards all fields.
type indexer struct {
	limit  int           // with more fresh slots than this, a block is due
	forget time.Duration // the longest time between a change and a call of forgetTexts

	running bool            // the goroutine makes blocks
	tasks   sync.WaitGroup  // has the goroutine
	timer   *time.Timer     // calls forgetTexts; nil from that call until a view is published
	ctx     context.Context // ends the goroutine
	end     context.CancelFunc
}

func newIndexer() indexer {
	ctx, end := context.WithCancel(context.Background())
	return indexer{
		limit:  2048,          // a search reads so many rows in 0.3 ms
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

// startIndexing starts the timer of forgetTexts, unless it runs, and makeBlocks, unless it runs or no block is
// due. The caller holds m.writing.
func (m *Model) startIndexing() {
	x := &m.indexer
	if x.ctx.Err() != nil {
		return
	}

	if x.timer == nil {
		x.timer = time.AfterFunc(x.forget, m.forgetTexts)
	}
	if _, _, isDue := m.nextBlock(); isDue && !x.running {
		x.running = true
		x.tasks.Go(m.makeBlocks)
	}
}

// nextBlock returns the block to be made next, if one is due: the first one with a text to forget, else, if there
// are too many fresh slots in all, the block with the most of them.
func (m *Model) nextBlock() (listNum, blockNum int, isDue bool) {
	mostFresh := 0 // in one block
	allFresh := 0
	for i, l := range m.lists {
		for n, b := range l.texts.blocks {
			if b.hasGone {
				return i, n, true
			}

			allFresh += len(b.fresh)
			if len(b.fresh) > mostFresh {
				mostFresh = len(b.fresh)
				listNum = i
				blockNum = n
			}
		}
	}
	return listNum, blockNum, allFresh > m.indexer.limit
}

// forgetTexts marks every block with a row that its list no longer has, so that it is made of current rows.
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
		listNum, blockNum, l := m.beginBlock()
		if l == nil {
			return
		}
		begun := time.Now()
		m.finishBlock(listNum, blockNum, l.newTextBlock(blockNum), l)

		// l still has the block before this one. While a block has no index, searches read all its rows, so
		// no pause follows the first index of a block.
		wasFirst := l.texts.blocks[blockNum].index == nil
		if wasFirst {
			continue
		}

		// The pause is twice as long as the work, which thus takes at most a third of a CPU.
		select {
		case <-time.After(2 * time.Since(begun)):
		case <-m.indexer.ctx.Done():
		}
	}
}

// beginBlock returns the next block, and the list l of the newest view to make it of. l is nil if the goroutine
// has to end: no block is due, the model is closed, or EndBulk will start the goroutine again.
func (m *Model) beginBlock() (listNum, blockNum int, l *list) {
	m.writing.Lock()
	defer m.writing.Unlock()

	listNum, blockNum, isDue := m.nextBlock()
	if !isDue || m.indexer.ctx.Err() != nil || m.bulk {
		m.indexer.running = false
		return listNum, blockNum, nil
	}

	m.lists[listNum].texts.blocks[blockNum].hasGone = false
	return listNum, blockNum, m.View().lists[listNum]
}

// finishBlock replaces a block of the owner's list, and of the same list in a new view, by one that was made
// of before. It publishes the view, but wakes nobody in Await, since the view has the same sequence.
func (m *Model) finishBlock(listNum, blockNum int, made textBlock, before *list) {
	m.writing.Lock()
	defer m.writing.Unlock()

	m.lists[listNum].replaceBlock(blockNum, made, before)

	v := *m.View()
	l := *v.lists[listNum]
	l.texts = l.texts.copyForView()
	l.replaceBlock(blockNum, made, before)
	v.lists[listNum] = &l
	m.view.Store(&v)
}
