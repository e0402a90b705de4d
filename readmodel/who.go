package readmodel

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/readmodel/btree"
	"example.org/registry/readmodel/lookalike"
)

// Question is what a person check looks up, all at once. The members of an [Answer] correspond to its
// members, one by one.
type Question struct {
	IDs      []string         // chat ids, exact
	Numbers  []string         // entry ids, or numbers of reports in any case
	Literals []string         // names, as [lookalike.Literal] returns them
	Cores    []lookalike.Keys // names that a person could take for one another, as [lookalike.Core] returns them
}

// Answer has the entries for each part of a [Question]: of each list the newest verified and the newest
// unverified ones, at most MaxGroup of each. A flood of unconfirmed reports therefore cannot hide a
// confirmed one.
type Answer struct {
	IDs, Numbers, Literals, Cores [][]*Row
	// More says that a literal name, or a core, has more rows than were read.
	MoreLiterals, MoreCores bool
}

// The bounds of the rows of one question, which keep it below milliseconds.
const (
	maxNamesakes    = 1000 // of one name
	maxAllNamesakes = 3000 // of all names
)

// Who answers a question. It reads no text and waits for no index. Its only error is ctx's.
func (v *View) Who(ctx context.Context, q *Question) (a Answer, err error) {
	a = Answer{
		IDs: make([][]*Row, len(q.IDs)), Numbers: make([][]*Row, len(q.Numbers)),
		Literals: make([][]*Row, len(q.Literals)), Cores: make([][]*Row, len(q.Cores)),
	}
	for i, id := range q.IDs {
		var found people
		v.withChatID(id, func(_ int, r *Row) { found.add(r) })
		a.IDs[i] = found.rows()
	}
	for i, number := range q.Numbers {
		a.Numbers[i] = v.withNumber(number)
	}
	names, left := &v.similarNames, maxAllNamesakes
	for i, literal := range q.Literals {
		var found people
		ok := names.findSome(names.literalHash(literal), &left, func(ref RowRef) {
			if r := v.Row(ref); lookalike.Literal(r.Name()) == literal {
				found.add(r)
			}
		})
		a.Literals[i], a.MoreLiterals = found.rows(), a.MoreLiterals || !ok
	}
	left = maxAllNamesakes
	for i, core := range q.Cores {
		if i%256 == 0 && ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		var found people
		add := func(ref RowRef) { found.add(v.Row(ref)) }
		ok := core.Shape == "" || names.findSome(maphash.String(names.whole, core.Shape), &left, add)
		if core.Folded != "" && core.Folded != core.Shape {
			ok = names.findSome(maphash.String(names.whole, core.Folded), &left, add) && ok
		}
		a.Cores[i], a.MoreCores = found.rows(), a.MoreCores || !ok
	}
	return a, ctx.Err()
}

// withNumber returns the entries with this entry id, or with this report number in any case.
func (v *View) withNumber(number string) (found []*Row) {
	for _, l := range events.Lists() {
		if r := v.Entry(l, number); r != nil {
			found = append(found, r)
		}
	}
	v.similarNames.find(v.similarNames.reportHash(number), func(ref RowRef) bool {
		if r := v.Row(ref); strings.EqualFold(r.ReportID(), number) && r.shown() && !slices.Contains(found, r) {
			found = append(found, r)
		}
		return len(found) < MaxGroup
	})
	return found
}

// reportHash returns the hash of a report number, under which rows are stored.
func (x *similarIndex) reportHash(number string) uint64 {
	return maphash.String(x.reports, strings.ToLower(number))
}

// find calls f with the rows stored under a hash, in ascending order, until it returns false.
func (x *similarIndex) find(hash uint64, f func(RowRef) bool) {
	x.tree.AscendFrom(hash, func(it btree.Item) bool { return it.Key == hash && f(RowRef(it.Slot)) })
}

// findSome calls f with the rows stored under a hash, at most maxNamesakes and left, and reports
// whether that is all. It counts them off left.
func (x *similarIndex) findSome(hash uint64, left *int, f func(RowRef)) bool {
	read, all := min(*left, maxNamesakes), true
	x.find(hash, func(ref RowRef) bool {
		if read--; read < 0 {
			all = false
			return false
		}
		*left--
		f(ref)
		return true
	})
	return all
}

// people holds the entries found, by list and verification, at most MaxGroup of each. It is nil until
// the first one.
type people struct{ found *[events.NumLists][2][]*Row }

func (p *people) add(r *Row) {
	if !r.shown() {
		return
	}
	if p.found == nil {
		p.found = new([events.NumLists][2][]*Row)
	}
	of := &p.found[r.list][0]
	if !r.Verified() {
		of = &p.found[r.list][1]
	}
	*of = keepNewest(*of, r)
}

// rows returns the entries found.
func (p *people) rows() (found []*Row) {
	if p.found == nil {
		return nil
	}
	for _, list := range p.found {
		for _, rows := range list {
			found = append(found, rows...)
		}
	}
	return found
}
