package readmodel

import (
	"crypto/sha256"
	"strconv"

	"example.org/registry/events"
)

// The feed lists every entry and every tombstone by the stream sequence of its last change
// (httpapi/CONTRACT.md#changes). It is a function of the content. Any model of the same stream has
// the same feed at the same sequence, so a client can continue with another replica or after a
// rebuild.

// feedText returns the text of a row in the feed, or "" if its list does not show it.
func (r *Row) feedText() string {
	if r == nil || !r.shown() {
		return ""
	}
	return r.JSON()
}

// feedDigest returns the hash of a shown row that the feed's digest includes. Clients compute the
// same.
func (r *Row) feedDigest() Digest {
	var room [2048]byte
	b := append(append(room[:0], r.List()...), '\n')
	sum := sha256.Sum256(append(b, r.JSON()...))
	return Digest(sum[:len(Digest{})])
}

// Epoch names the feed: it is the name of the stream that the view's sequences belong to. It is empty
// while there is no feed.
func (v *View) Epoch() string { return v.epoch }

// FeedSequence returns the view's sequence, and 0.
func (v *View) FeedSequence() (sequence, base uint64) { return v.sequence, 0 }

// LastChange returns the sequence of the last change in the feed, or 0 if the feed is empty.
func (v *View) LastChange() uint64 {
	last, _, _ := v.feed.Max()
	return last
}

// FeedDigest identifies the content of the lists without view totals. Unlike Digest it can be
// computed from the feed alone.
func (v *View) FeedDigest() Digest { return v.feedDigest }

// FeedTag returns a tag of the feed, 32 hexadecimal digits. It changes with every sequence, since
// pages name the last one.
func (v *View) FeedTag() string {
	var at Digest
	at.set(v.sequence, v.LastChange())
	return contentTag("changes "+strconv.Itoa(v.feed.Len())+" "+v.epoch, v.feedDigest, at)
}

// Change is the last change of an entry.
type Change struct {
	Sequence uint64 // stream sequence
	List     events.List
	ID       string // entry id
	Row      *Row   // as the list shows it; nil if the list does not show the entry
}

// FeedPage is a part of the feed: the changes after Since, up to Until. The next page begins at
// Until.
type FeedPage struct {
	Epoch        string
	Since, Until uint64
	UpToDate     bool // no changes follow in the view; Until is its sequence
	Changes      []Change
}

// The sizes of a page, in bytes.
const (
	// MaxFeedPage bounds a page as JSON or as events, unless a single change exceeds it.
	MaxFeedPage = 1 << 20
	// feedRoom bounds what a change, or the frame of a page, takes besides entry and epoch.
	feedRoom = 256
)

// Feed returns at most limit changes after since, as many as fit into size bytes, but at least one.
// since must not be after the feed's sequence.
func (v *View) Feed(since uint64, limit, size int) FeedPage {
	p := FeedPage{Epoch: v.epoch, Since: since, Until: v.sequence, UpToDate: true}
	size -= feedRoom + 6*len(v.epoch) // JSON may escape it
	v.feed.Ascend(since+1, func(sequence uint64, r *Row) bool {
		text := r.feedText()
		if size -= feedRoom + len(text); len(p.Changes) > 0 && size < 0 || len(p.Changes) == limit {
			p.Until, p.UpToDate = p.Changes[len(p.Changes)-1].Sequence, false
			return false
		}
		c := Change{Sequence: sequence, List: r.List(), ID: r.id}
		if r.shown() {
			c.Row = r
		}
		p.Changes = append(p.Changes, c)
		return true
	})
	return p
}
