package readmodel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"example.org/registry/events"
	"github.com/tidwall/btree"
)

// View is one state of the whole read model. It never changes: any number of goroutines may read
// it for as long as they like, and everything read from one View belongs together (promise 2).
type View struct {
	sequence  uint64
	digest    Digest
	lists     [numLists]*listView
	chats     chats
	likes     likes
	donations *btree.BTreeG[*donation]
	checkTag  string

	changes     changeLog
	accelerator *accelerator // shared with the model and its other views
}

// listView is one list of a View; a list that did not change is shared by the views that follow.
type listView struct {
	trees           [numTrees]tree
	rows            paged[*Row]
	filters         paged[filterBits]
	totals          paged[int64]
	tag, popularTag string
}

// Sequence is the checkpoint that the view was made at.
func (v *View) Sequence() uint64 { return v.sequence }

// Digest identifies the content of the view.
func (v *View) Digest() Digest { return v.digest }

// Entries is how many entries the list shows without a filter.
func (v *View) Entries(l events.List) int {
	return v.list(l).trees[treeIndex(byTime, StatusAll, ProofsAll)].count
}

// ListTag is a tag of the list's content as sort s shows it: 32 hexadecimal digits, the same
// wherever the content is the same, changing with view totals only where s depends on them
// (API contract, lists: ETag).
func (v *View) ListTag(l events.List, s Sort) string {
	if s.ByViews() {
		return v.list(l).popularTag
	}
	return v.list(l).tag
}

// CheckTag is a tag of the content of all lists, view totals left out.
func (v *View) CheckTag() string { return v.checkTag }

// Donation is the donation of that id, if there is one.
func (v *View) Donation(id string) (events.Donation, bool) {
	d, ok := v.donations.Get(&donation{Donation: events.Donation{DonationID: id}})
	if !ok {
		return events.Donation{}, false
	}
	return d.Donation, true
}

func (v *View) list(l events.List) *listView { return v.lists[listIndex(l)] }

// nextView is the last view with what has changed since put in its place.
func (m *Model) nextView() *View {
	v := *m.View()
	v.sequence, v.digest, v.changes = m.checkpoint, m.Digest(), m.changes
	v.chats, v.likes = chats{m.chats.seed, m.chats.tree.share()}, m.likes.share()
	for i, c := range m.lists {
		if c.changed {
			v.lists[i] = c.publish(events.Lists()[i], v.lists[i])
			v.checkTag = contentTag("check", m.lists[0].entries, m.lists[1].entries, m.lists[2].entries)
		}
	}
	if m.donationsChanged {
		v.donations, m.donationsChanged = m.donations.Copy(), false
	}
	return &v
}

func (c *catalogue) publish(name events.List, last *listView) *listView {
	l := &listView{trees: last.trees}
	l.rows, l.filters, l.totals = c.orders.rows.share(), c.orders.filters.share(), c.totals.share()
	c.orders.publish(&l.trees)
	l.tag = contentTag(string(name), c.entries)
	l.popularTag = contentTag(string(name)+" by views", c.entries, c.views)
	c.changed = false
	return l
}

// contentTag hashes what an answer is made from: the content and how it is rendered.
func contentTag(what string, digests ...Digest) string {
	b := binary.BigEndian.AppendUint32([]byte(what+"\n"), RenderVersion)
	for _, d := range digests {
		b = append(b, d[:]...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
