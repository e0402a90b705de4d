package readmodel

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel/textindex"
)

// Indexer keeps a text index of a model. Nobody waits for it: searches are exact without it, and
// faster as far as it has come.
type Indexer struct {
	// Dir is where the index's files are made, and where it is saved for the next process. What else is there is removed.
	Dir string
	// Logger gets one line when the index is first complete and one for each failure. Nil: none.
	Logger *slog.Logger
	// Busy reports whether somebody else wants the processors: then making the index takes a quarter of them at most, as it does while the
	// model changes. One goroutine calls it, a few times a second. Nil: always.
	Busy func() bool

	maxPending int           // changed rows of a part that searches look at; one more makes a block. Zero: 32
	minRenewal int           // how much a vocabulary grows before another is begun, in bytes, beside doubling. Zero: 1 MiB
	pause      time.Duration // after a view, before the next one is followed. Zero: 20 ms
	trouble    atomic.Pointer[string]
	writing    atomic.Pointer[time.Time] // since when; nil while nothing is written
	saved      atomic.Uint64             // see SavedSequence
}

const (
	// retryAfter is how long to wait after a failure before the index is written again.
	retryAfter = 5 * time.Second
	// hangsAfter is how long a block may take to write before it is said to hang.
	hangsAfter = 10 * time.Second
)

// Run keeps an index of m until ctx ends, and saves it for the next process. It begins with what an earlier one saved, if the model
// has kept its slots (Model.KeepSlots). What fails is tried again after a while, and what has been indexed stays in use. One Indexer
// runs for a model at a time.
func (x *Indexer) Run(ctx context.Context, m *Model) {
	start, told := time.Now(), false
	b := x.begin(m)
	for ctx.Err() == nil {
		v := m.View()
		more, err := b.step(ctx, v)
		if err != nil && ctx.Err() == nil {
			x.failed(err)
		}
		if !told && b.index.completeAt > 0 {
			told = true
			x.logger().Info("text index complete", "checkpoint", v.sequence, "entriesIndexed", b.indexed,
				"took", time.Since(start).Round(time.Millisecond).String())
		}
		if !more {
			x.save(b, false)
			b.idle(ctx, v)
		}
	}
	x.save(b, true)
}

// begin returns a builder for m, with the saved index if there is a good one.
func (x *Indexer) begin(m *Model) *indexBuilder {
	b := &indexBuilder{indexer: x, model: m}
	if m.saved == nil {
		return b
	}
	err := b.resume(m.saved, m.View())
	if m.saved = nil; err == nil {
		return b
	}
	x.logger().Warn("the saved text index cannot be used; making it anew", "reason", err.Error())
	return &indexBuilder{indexer: x, model: m}
}

func (x *Indexer) save(b *indexBuilder, last bool) {
	if err := b.save(last); err != nil {
		x.logger().Warn("text index cannot be saved; the next start makes anew what was not", "error", err)
	}
}

// Trouble returns a sentence that says what is wrong with the index, or "". Any goroutine may call
// it.
func (x *Indexer) Trouble() string {
	if since := x.writing.Load(); since != nil {
		if d := time.Since(*since); d > hangsAfter {
			return fmt.Sprintf("The text index has been writing for %s; searches look at every entry it lacks.", d.Round(time.Second))
		}
	}
	if t := x.trouble.Load(); t != nil {
		return *t
	}
	return ""
}

// SavedSequence returns the checkpoint at which the index was last saved for the next process, or taken over from an earlier one; 0 for
// neither. Any goroutine may call it.
func (x *Indexer) SavedSequence() uint64 { return x.saved.Load() }

func (x *Indexer) failed(err error) {
	sentence := "The text index cannot be written, so searches look at the entries it lacks: " + err.Error() + "."
	x.trouble.Store(&sentence)
	x.logger().Error("text index cannot be written; searches look at the entries it lacks", "error", err, "retry", retryAfter.String())
}

func (x *Indexer) logger() *slog.Logger {
	if x.Logger != nil {
		return x.Logger
	}
	return slog.New(slog.DiscardHandler)
}

// IndexSequence returns the last sequence at which the text index covered the model, but for a few
// entries that searches look at; 0 while it has never come so far. Any goroutine may call it.
func (m *Model) IndexSequence() uint64 {
	if x := m.text.index.Load(); x != nil {
		return (*x).complete()
	}
	return 0
}

// indexSnapshot is the index of all lists at one moment: a textIndex made of blocks. It never
// changes.
type indexSnapshot struct {
	begun      uint64 // changes before it were not followed, so older views cannot use the index
	sequence   uint64 // every change from begun up to here is known to a part
	completeAt uint64 // the last such sequence at which no part was waiting to be built
	lists      [events.NumLists][]part
}

// part is the index of textindex.BlockLen neighboring slots of a list.
type part struct {
	large     *textindex.Block // of all rows, when it was built; nil: empty
	small     *textindex.Block // of the rows in inSmall, which have changed since
	inSmall   *textindex.Set   // nil: none
	unindexed *textindex.Set   // rows that changed after either, or did not fit: searches look at them. Nil: none
	built     uint64           // sequence of the view that the newer block was made from
	pending   int              // how many of unindexed a new block would take in
}

func (x *indexSnapshot) complete() uint64 { return x.completeAt }

func (x *indexSnapshot) coverage(v *View) (sequence uint64, ok bool) {
	return x.sequence, x.begun <= v.sequence
}

func (x *indexSnapshot) candidates(ctx context.Context, v *View, q textQuery, found func(first uint32, sure, maybe *textindex.Set)) error {
	text := textindex.All
	if q.part == nameAndIDs {
		text = textindex.Names
	}
	query := textindex.NewQuery(text, q.needle)
	var sure, maybe textindex.Set
	for i := range x.lists[q.list] {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		x.lists[q.list][i].find(v, query, &sure, &maybe)
		found(uint32(i)*textindex.BlockLen, &sure, &maybe)
	}
	return nil
}

// find sets sure to the slots of the part whose rows match q in v, and maybe to the others that may.
func (p *part) find(v *View, q *textindex.Query, sure, maybe *textindex.Set) {
	// An older view may have other texts than the blocks. A block that cannot be read makes a search slower.
	if p.built > v.sequence || p.findInBlocks(q, sure, maybe) != nil {
		*sure = textindex.Set{}
		maybe.Fill()
		return
	}
	if p.unindexed != nil {
		sure.AndNot(p.unindexed)
		maybe.Or(p.unindexed)
	}
	maybe.AndNot(sure)
}

func (p *part) findInBlocks(q *textindex.Query, sure, maybe *textindex.Set) error {
	if err := p.large.Find(q, sure, maybe); err != nil || p.inSmall == nil {
		return err
	}
	sure.AndNot(p.inSmall)
	maybe.AndNot(p.inSmall)
	var smallSure, smallMaybe textindex.Set
	if err := p.small.Find(q, &smallSure, &smallMaybe); err != nil {
		return err
	}
	sure.Or(&smallSure)
	maybe.Or(&smallMaybe)
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// rest leaves the processors to others: after having worked for a while, the caller waits so long that
// it takes a quarter of them at most.
func rest(ctx context.Context, busy time.Duration) {
	if n := runtime.GOMAXPROCS(0); n < 4 {
		wait(ctx, busy*time.Duration(4-n)/time.Duration(n))
	}
}
