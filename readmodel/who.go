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
	names, left := &v.names, maxAllNamesakes
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
		ok := core.Shape == "" || names.findSome(maphash.String(names.alike, core.Shape), &left, add)
		if core.Folded != "" && core.Folded != core.Shape {
			ok = names.findSome(maphash.String(names.alike, core.Folded), &left, add) && ok
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
	v.names.find(v.names.reportHash(number), func(ref RowRef) bool {
		if r := v.Row(ref); strings.EqualFold(r.ReportID(), number) && r.shown() && !slices.Contains(found, r) {
			found = append(found, r)
		}
		return len(found) < MaxGroup
	})
	return found
}

// nameIndex is the facet of exact names: it finds rows by the hash of their literal name, of what a person
// could take their name for, and of the number of their report.
type nameIndex struct {
	alike, literal, reports maphash.Seed // random, so that no publisher can choose names that collide
	tree                    btree.Tree
	scratch                 []btree.Item // used by the owner only
	content                 *content     // nil in a view
}

func newNameIndex(c *content) *nameIndex {
	return &nameIndex{alike: maphash.MakeSeed(), literal: maphash.MakeSeed(), reports: maphash.MakeSeed(), content: c}
}

func (x *nameIndex) apply(ch change) {
	if ch.old != nil && ch.row != nil && ch.old.Name() == ch.row.Name() &&
		ch.old.ReportID() == ch.row.ReportID() && ch.old.shown() == ch.row.shown() {
		return
	}
	for _, it := range x.items(ch.old) {
		x.tree.Delete(it, btree.ByKey)
	}
	for _, it := range x.items(ch.row) {
		x.tree.Insert(it, btree.ByKey)
	}
}

func (x *nameIndex) reload(s *scratch) {
	items := s.room(4 * x.content.numRows())
	for r := range x.content.rows() {
		items = x.appendItems(items, r)
	}
	s.sorter.Sort(items, nil, btree.ByKey)
	x.tree.Load(slices.Compact(items))
}

func (x *nameIndex) publish(v *View) {
	v.names = nameIndex{alike: x.alike, literal: x.literal, reports: x.reports, tree: x.tree.Snapshot()}
}

// items returns the distinct items of r, in x.scratch.
func (x *nameIndex) items(r *Row) []btree.Item {
	x.scratch = x.appendItems(x.scratch[:0], r)
	slices.SortFunc(x.scratch, btree.ByKey)
	return slices.Compact(x.scratch)
}

// appendItems appends the items of r, with repetitions. A row that is not shown has none.
func (x *nameIndex) appendItems(items []btree.Item, r *Row) []btree.Item {
	if r == nil || !r.shown() {
		return items
	}
	name, ref := r.Name(), uint32(r.Ref())
	items = append(items,
		btree.Item{Key: x.reportHash(r.ReportID()), Slot: ref},
		btree.Item{Key: x.literalHash(lookalike.Literal(name)), Slot: ref})
	items = x.appendCore(items, ref, r.keys.Joined())
	if strings.ContainsFunc(name, isDecoration) || strings.ContainsFunc(r.folded, isDecoration) {
		for _, core := range lookalike.Cores(name) {
			items = x.appendCore(items, ref, core)
		}
	}
	return items
}

// isDecoration reports whether r, in a name or a folded name, may make a core of the name differ from its
// joined keys.
func isDecoration(r rune) bool {
	return r != ' ' && (!lookalike.IsWordly(r) || lookalike.Invisible(r))
}

func (x *nameIndex) appendCore(items []btree.Item, ref uint32, core lookalike.Keys) []btree.Item {
	for _, key := range [...]string{core.Shape, core.Folded} {
		if key != "" {
			items = append(items, btree.Item{Key: maphash.String(x.alike, key), Slot: ref})
		}
	}
	return items
}

// literalHash returns the hash of a literal name.
func (x *nameIndex) literalHash(literal string) uint64 { return maphash.String(x.literal, literal) }

// reportHash returns the hash of a report number, under which rows are stored.
func (x *nameIndex) reportHash(number string) uint64 {
	return maphash.String(x.reports, strings.ToLower(number))
}

// find calls f with the rows stored under a hash, in ascending order, until it returns false.
func (x *nameIndex) find(hash uint64, f func(RowRef) bool) {
	x.tree.AscendFrom(hash, func(it btree.Item) bool { return it.Key == hash && f(RowRef(it.Slot)) })
}

// findSome calls f with the rows stored under a hash, at most maxNamesakes and left, and reports
// whether that is all. It counts them off left.
func (x *nameIndex) findSome(hash uint64, left *int, f func(RowRef)) bool {
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
