package readmodel

import (
	"fmt"

	"example.org/registry/events"
)

// Feed lists every entry and every tombstone by the stream sequence of its last change
// (httpapi/CONTRACT.md#changes). Any model of the same stream has the same feed at the same sequence, so a
// client can continue with another replica or after a rebuild.
type Feed struct{ view *View }

// LastChange returns the sequence of the last change in the feed, or 0 if the feed is empty.
func (f Feed) LastChange() uint64 {
	last, _, _ := f.view.feed.Max()
	return last
}

// Digest identifies the content of the lists without view totals. Unlike View.Digest, clients can compute this
// digest from the feed.
func (f Feed) Digest() Digest { return f.view.feedDigest }

// Tag returns a tag of the feed, 32 hexadecimal digits. The tag changes with every sequence of the view, since
// the last page names that sequence.
func (f Feed) Tag() string {
	kind := fmt.Sprint("changes ", f.view.feed.Len(), " ", f.view.sequence, " ", f.LastChange(), " ", f.view.epoch)
	return contentTag(kind, f.view.feedDigest)
}

// Change is the last change of an entry.
type Change struct {
	Sequence uint64 // stream sequence
	List     events.List
	ID       string // entry id
	Row      *Row   // as the list shows it; nil if the list does not show the entry
}

// FeedPage is a part of the feed: the changes after Since, up to Until. The next page is the one after Until.
type FeedPage struct {
	Epoch        string
	Since, Until uint64
	UpToDate     bool // the view has no changes after these, and Until is its sequence
	Changes      []Change
}

// The sizes of a page, in bytes.
const (
	// MaxFeedPageBytes bounds a page as JSON or as events, unless a single change exceeds it.
	MaxFeedPageBytes = 1 << 20
	// feedRoom bounds the bytes of a change without its entry, and of a page without its changes and epoch.
	feedRoom = 256
)

// Page returns the first changes after since: at most limit, and as many as fit into size bytes. A change that alone
// does not fit is a page by itself. limit is positive, and since is at most the view's sequence.
func (f Feed) Page(since uint64, limit, size int) FeedPage {
	p := FeedPage{Epoch: f.view.epoch, Since: since, Until: f.view.sequence, UpToDate: true}
	bytesLeft := size - feedRoom - 6*len(p.Epoch) // JSON escapes a byte as six at most

	f.view.feed.Ascend(since+1, func(sequence uint64, r *Row) bool {
		bytesLeft -= feedRoom + len(r.feedText())
		isTooLong := bytesLeft < 0 && len(p.Changes) > 0 // a page has at least one change
		if len(p.Changes) == limit || isTooLong {
			p.Until = p.Changes[len(p.Changes)-1].Sequence
			p.UpToDate = false
			return false
		}

		c := Change{Sequence: sequence, List: r.List(), ID: r.id}
		if r.isShown() {
			c.Row = r
		}
		p.Changes = append(p.Changes, c)
		return true
	})
	return p
}

// feedText returns the text of a row in the feed, or "" if its list does not show it.
func (r *Row) feedText() string {
	if r == nil || !r.isShown() {
		return ""
	}
	return r.JSON()
}

// feedDigest returns the part that a shown row has in the feed's digest. Clients compute the same.
func (r *Row) feedDigest() Digest { return hashNamed(string(r.List()), r.json) }
