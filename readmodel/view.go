package readmodel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"example.org/registry/events"
)

// View is one state of the whole read model. It never changes: any number of goroutines may read it
// at any time, and everything read from one View belongs together. List, Check and Who answer from it.
type View struct {
	state
	next chan struct{} // closed when a view of a later state is published
}

// Sequence returns the view's checkpoint: every message of the stream up to it has been handled.
func (v *View) Sequence() uint64 { return v.sequence }

// Epoch returns the name of the feed: the epoch of the stream that the view's sequences belong to. The
// name is empty while there is no feed (Model.NameFeed).
func (v *View) Epoch() string { return v.epoch }

// Digest identifies the content of the view.
func (v *View) Digest() Digest { return v.digest }

// NumEntries returns how many entries the list shows without a filter.
func (v *View) NumEntries(l events.List) int {
	return v.list(l).counts.sumByStatus(ProofsAll)[StatusAll]
}

// Total returns how many entries all lists show.
func (v *View) Total() (n int) {
	for _, l := range events.Lists() {
		n += v.NumEntries(l)
	}
	return n
}

// NumSubjects returns how many subjects have a state: entries and donations, removed ones included,
// and view totals. The stream has a message of each subject, except for the subjects that Lacking counts.
func (v *View) NumSubjects() int { return v.subjects }

// Lacking returns how many subjects have a state that the stream is not known to hold.
func (v *View) Lacking() int { return v.numLacking }

// Tombstones returns how many entries were delisted and have not been listed again.
func (v *View) Tombstones(l events.List) int { return v.list(l).tombstones }

// Donation returns the donation with an id, if there is one.
func (v *View) Donation(id string) (events.Donation, bool) {
	if d, _ := v.donations.Get(id); d.state != nil {
		return *d.state, true
	}
	return events.Donation{}, false
}

// Entry returns the row of an entry id if the list shows it, else nil.
func (v *View) Entry(l events.List, id string) *Row {
	if e, _ := v.list(l).entries.Get(id); e.row != nil && e.row.isShown() {
		return e.row
	}
	return nil
}

// ListTag returns a tag of the content that the response to q depends on, 32 hexadecimal digits. The tag is equal
// wherever that content is equal (httpapi/CONTRACT.md#caching). Each list has two tags; q.ByViews chooses one.
func (v *View) ListTag(q *ListQuery) string {
	if q.ByViews() {
		return v.list(q.List).popularTag
	}
	return v.list(q.List).tag
}

// CheckTag returns a tag of the content of all lists without view totals.
func (v *View) CheckTag() string { return v.checkTag }

// Feed returns the changes of all entries.
func (v *View) Feed() Feed { return Feed{v} }

// Ranges returns the shown chat ids in their ranges.
func (v *View) Ranges() *Ranges { return &v.chats }

// AnswerVersion is the version of the code that turns content into responses: how entries are rendered, the JSON
// around them, which entries are found, and in which order. Every tag includes the version, so no client keeps a
// response of an older program. TestAnswerVersion of httpapi fails if the version has to be raised.
const AnswerVersion = 5

// contentTag returns the tag of one kind of response. The response depends on the content with these digests.
func contentTag(kind string, digests ...Digest) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s\n%v", AnswerVersion, kind, digests))
	return hex.EncodeToString(sum[:16])
}
