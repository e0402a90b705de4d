package httpapi

import (
	"strconv"
	"sync/atomic"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/respond"
	"example.org/registry/readmodel"
)

// stateHeaders holds header values that depend on the state alone. Many responses share them, so
// they never change.
type stateHeaders struct {
	respond.Stamp
	key  stateKey
	tags *viewTags
}

// stateKey identifies the view of the values: entity tags are a function of the content, and so is
// its digest. A pointer to the view would keep it in memory.
type stateKey struct {
	epoch    string
	sequence uint64
	digest   readmodel.Digest
}

// viewTags are the entity tags of one view (httpapi/CONTRACT.md#caching).
type viewTags struct {
	lists   [events.NumLists]respond.Tags // of responses that do not depend on view totals
	byViews [events.NumLists]respond.Tags // of responses that do
	check   respond.Tags
	feed    respond.Tags
}

func newViewTags(view *readmodel.View) *viewTags {
	t := &viewTags{check: respond.NewTags(view.CheckTag()), feed: respond.NewTags(view.FeedTag())}
	for i, l := range events.Lists() {
		t.lists[i] = respond.NewTags(view.ListTag(&readmodel.ListQuery{List: l}))
		t.byViews[i] = respond.NewTags(view.ListTag(&readmodel.ListQuery{List: l, Sort: readmodel.Popular}))
	}
	return t
}

// list returns the tag of the response to q: View.ListTag, formatted.
func (t *viewTags) list(q *readmodel.ListQuery) *respond.Tags {
	i, _ := q.List.Index() // routes exist only for events.Lists
	if q.ByViews() {
		return &t.byViews[i]
	}
	return &t.lists[i]
}

// stateHeaderCache caches the headers of the newest state. Just after a change a few responses are
// at an older one; they build their own, which takes microseconds. Any goroutine may use it.
type stateHeaderCache struct{ last atomic.Pointer[stateHeaders] }

func (c *stateHeaderCache) headersFor(view *readmodel.View, asOf time.Time) *stateHeaders {
	key, ms := stateKey{view.Epoch(), view.Sequence(), view.Digest()}, asOf.UnixMilli()
	last := c.last.Load()
	if last != nil && last.key == key && last.Time.UnixMilli() == ms {
		return last
	}
	next := &stateHeaders{key: key, Stamp: respond.Stamp{AsOf: []string{body.Time(asOf)}, Time: time.UnixMilli(ms)}}
	if last != nil && last.key == key {
		next.Sequence, next.tags = last.Sequence, last.tags
	} else {
		next.Sequence = []string{strconv.FormatUint(key.sequence, 10)}
		next.tags = newViewTags(view)
	}
	c.last.Store(next)
	return next
}
