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
	view     *readmodel.View
	asOf     int64    // milliseconds since 1970
	sequence []string // Registry-Sequence
	asOfText []string // Registry-As-Of
	tags     *viewTags
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
	ms := asOf.UnixMilli()
	last := c.last.Load()
	if last != nil && last.view == view && last.asOf == ms {
		return last
	}
	next := newHeads(view, asOf, last)
	c.last.Store(next)
	return next
}

// newHeads takes over what last has of the same view.
func newHeads(view *readmodel.View, asOf time.Time, last *heads) *heads {
	h := &heads{view: view, asOf: asOf.UnixMilli(), asOfText: []string{stamp(asOf)}}
	if last != nil && last.view == view {
		h.sequence, h.tags = last.sequence, last.tags
		return h
	}
	h.sequence = []string{strconv.FormatUint(view.Sequence(), 10)}
	h.tags = newViewTags(view)
	return h
}

func newViewTags(view *readmodel.View) *viewTags {
	t := &viewTags{check: newTagSet(view.CheckTag())}
	for i, l := range events.Lists() {
		t.lists[i][0] = newTagSet(view.ListTag(l, readmodel.Newest))
		t.lists[i][1] = newTagSet(view.ListTag(l, readmodel.Popular))
	}
	return t
}
