package readmodel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"example.org/registry/events"
)

// View is one state of the whole read model. It never changes: any number of goroutines may read it
// at any time, and everything read from one View is consistent (promise 2). List and Check answer
// from it.
type View struct{ state }

// Sequence returns the checkpoint of the view.
func (v *View) Sequence() uint64 { return v.sequence }

// Digest identifies the content of the view.
func (v *View) Digest() Digest { return v.digest }

// NumEntries returns how many entries the list shows without a filter.
func (v *View) NumEntries(l events.List) int {
	return v.list(l).counts.count(&ListQuery{})
}

// Total returns how many entries all lists show.
func (v *View) Total() (n int) {
	for _, l := range events.Lists() {
		n += v.NumEntries(l)
	}
	return n
}

// NumSubjects returns how many subjects have a state: entries and donations, removed ones included,
// and view totals. The stream has a message for each.
func (v *View) NumSubjects() int { return v.subjects }

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
	if e, _ := v.list(l).entries.Get(id); e.row != nil && e.row.shown() {
		return e.row
	}
	return nil
}

// ShownRows calls f with every row that its list shows, list by list and in the order of slots, until
// f returns false.
func (v *View) ShownRows(f func(*Row) bool) {
	for _, l := range v.lists {
		for _, r := range l.rows.all() {
			if r != nil && !f(r) {
				return
			}
		}
	}
}

// EntryTag returns a tag of the public content of r, 32 hexadecimal digits. Like ListTag it is
// equal wherever the content is equal. It does not depend on view totals.
func (r *Row) EntryTag() string { return contentTag("entry", r.digest) }

// ListTag returns a tag of the content that the response to q depends on, 32 hexadecimal digits. It
// is equal wherever that content is equal (httpapi/CONTRACT.md#caching). Of q it depends only on
// the list and on ByViews.
func (v *View) ListTag(q *ListQuery) string {
	if q.ByViews() {
		return v.list(q.List).popularTag
	}
	return v.list(q.List).tag
}

// CheckTag returns a tag of the content of all lists without view totals.
func (v *View) CheckTag() string { return v.checkTag }

// AnswerVersion is the version of everything in a response that RenderVersion does not cover: the
// envelope of a list, the members of a check, which entries are found and their order. Tags depend
// on it, so that no client keeps a response of an older program. TestAnswerVersion of httpapi fails
// if it has to be raised.
const AnswerVersion = 3

// contentTag hashes the inputs of a response: the content, the rendering and the kind of the
// response.
func contentTag(what string, digests ...Digest) string {
	b := binary.BigEndian.AppendUint32([]byte(what+"\n"), RenderVersion)
	b = binary.BigEndian.AppendUint32(b, AnswerVersion)
	for _, d := range digests {
		b = append(b, d[:]...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

func (v *View) list(l events.List) *list { return v.lists[listIndex(l)] }
