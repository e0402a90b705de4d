package httpapi

import (
	"strconv"
	"sync/atomic"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// heads holds header values that depend on the state answered from alone, ready to be put into
// an answer's header. They are shared by many answers: nobody may change an element of a slice.
type heads struct {
	state    stateKey
	asOf     int64    // milliseconds since 1970
	sequence []string // Registry-Sequence
	asOfText []string // Registry-As-Of
	tags     *viewTags
}

// stateKey identifies what heads say of a view: entity tags are a function of the content, and so
// is its digest. It stands for the view, which would otherwise be kept in memory by its heads.
type stateKey struct {
	sequence uint64
	digest   readmodel.Digest
}

// viewTags are the entity tags of one view.
type viewTags struct {
	lists [3][2]tagSet // by list, then whether the order depends on view totals
	check tagSet
}

// list is the tag of a list in an order.
func (t *viewTags) list(l events.List, s readmodel.Sort) *tagSet {
	byViews := 0
	if s.ByViews() {
		byViews = 1
	}
	for i, known := range events.Lists() {
		if known == l {
			return &t.lists[i][byViews]
		}
	}
	return nil // not reached: routes are made of events.Lists
}

// headCache remembers the heads of the newest state. Answers at an older one (there are some
// just after a change) may build theirs anew: it takes microseconds.
type headCache struct{ last atomic.Pointer[heads] }

// of is called by any goroutine.
func (c *headCache) of(view *readmodel.View, asOf time.Time) *heads {
	state, ms := stateKey{view.Sequence(), view.Digest()}, asOf.UnixMilli()
	last := c.last.Load()
	if last != nil && last.state == state && last.asOf == ms {
		return last
	}
	next := &heads{state: state, asOf: ms, asOfText: []string{stamp(asOf)}}
	if last != nil && last.state == state {
		next.sequence, next.tags = last.sequence, last.tags
	} else {
		next.sequence = []string{strconv.FormatUint(state.sequence, 10)}
		next.tags = newViewTags(view)
	}
	c.last.Store(next)
	return next
}

func newViewTags(view *readmodel.View) *viewTags {
	t := &viewTags{check: newTagSet(view.CheckTag())}
	for i, l := range events.Lists() {
		t.lists[i][0] = newTagSet(view.ListTag(l, readmodel.Newest))
		t.lists[i][1] = newTagSet(view.ListTag(l, readmodel.Popular))
	}
	return t
}
