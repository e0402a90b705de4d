package readmodel

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
)

// Question has all lookups of a person check. The fields of an [Answer] have the same names, and an element
// for each element here.
type Question struct {
	IDs      []string         // chat ids, exact
	Numbers  []string         // entry ids, or numbers of reports in capital or small letters
	Literals []string         // names, as [lookalike.Literal] returns them
	Cores    []lookalike.Keys // names that a person could take for one another, as [lookalike.Core] returns them
}

// Answer has the entries for each element of a [Question]: of each list the newest verified and the newest
// unverified ones, at most MaxGroup of each. A flood of unconfirmed reports therefore cannot hide a
// confirmed one.
type Answer struct {
	IDs, Numbers, Literals, Cores [][]*Row
	// More says that a literal name, or a core, has more rows than were read.
	MoreLiterals, MoreCores bool
}

// The bounds of the rows that are read for the literals of a question, and again for its cores.
const (
	maxNamesakes    = 1000 // of one hash of a name
	maxAllNamesakes = 3000 // of all names
)

// Who answers a question. It reads no text and waits for no index. Its only error is ctx's.
func (v *View) Who(ctx context.Context, q *Question) (a Answer, err error) {
	for _, id := range q.IDs {
		var found people
		for r := range v.chats.find(id) {
			found.add(r)
		}
		a.IDs = append(a.IDs, found.allRows())
	}

	// A number is an entry id or the number of a report.
	for _, number := range q.Numbers {
		var found []*Row
		for _, l := range events.Lists() {
			if r := v.Entry(l, number); r != nil {
				found = append(found, r)
			}
		}
		for r := range v.names.rows.find(v.names.hashReport(number)) {
			if len(found) >= MaxGroup {
				break
			}
			if strings.EqualFold(r.ReportID(), number) && !slices.Contains(found, r) {
				found = append(found, r)
			}
		}
		a.Numbers = append(a.Numbers, found)
	}

	// Very many entries may have the same name, so read only a bounded number of rows.
	literals := namesakes{names: &v.names, left: maxAllNamesakes}
	for _, literal := range q.Literals {
		var found people
		literals.readRows(v.names.hashLiteral(literal), func(r *Row) {
			if lookalike.Literal(r.Name()) == literal { // hashes may collide
				found.add(r)
			}
		})
		a.Literals = append(a.Literals, found.allRows())
	}

	cores := namesakes{names: &v.names, left: maxAllNamesakes}
	for i, core := range q.Cores {
		if i%256 == 0 && ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		a.Cores = append(a.Cores, cores.readAlike(core))
	}

	a.MoreLiterals = literals.more
	a.MoreCores = cores.more
	return a, ctx.Err()
}

// names finds shown rows by hashes: of the literal name, of each core of the name, and of the number of the
// report.
type names struct {
	seed maphash.Seed // random, so that no publisher can choose names that collide
	rows rowIndex
}

func newNames() names { return names{seed: maphash.MakeSeed(), rows: newRowIndex()} }

func (x *names) add(r *Row) {
	for _, hash := range x.hashesOf(r) {
		x.rows.add(hash, r)
	}
}

func (x *names) remove(r *Row) {
	for _, hash := range x.hashesOf(r) {
		x.rows.remove(hash, r)
	}
}

// hashesOf returns the hashes under which r is found, some perhaps twice. The only core of a name without
// decoration is its joined keys.
func (x *names) hashesOf(r *Row) (all []uint64) {
	name := r.Name()
	all = append(make([]uint64, 0, 8), x.hashReport(r.ReportID()), x.hashLiteral(lookalike.Literal(name)))

	cores := []lookalike.Keys{r.keys.Joined()}
	if strings.ContainsFunc(name, isDecoration) || strings.ContainsFunc(r.folded, isDecoration) {
		cores = append(cores, lookalike.Cores(name)...)
	}

	for _, core := range cores {
		for _, key := range [...]string{core.Shape, core.Folded} {
			if key != "" {
				all = append(all, x.hashAlike(key))
			}
		}
	}
	return slices.Compact(all) // the two keys of most cores are equal
}

// isDecoration reports whether a core of a name may differ from the joined keys because the name, or the
// folded name, contains r.
func isDecoration(r rune) bool {
	return r != ' ' && (!lookalike.IsWordly(r) || lookalike.IsInvisible(r))
}

// The kinds of hashes differ by a prefix.
func (x *names) hashAlike(key string) uint64       { return maphash.String(x.seed, "a"+key) }
func (x *names) hashLiteral(literal string) uint64 { return maphash.String(x.seed, "l"+literal) }
func (x *names) hashReport(number string) uint64 {
	return maphash.String(x.seed, "r"+strings.ToLower(number))
}

// namesakes reads the rows of several names within bounds.
type namesakes struct {
	names *names
	left  int  // number of rows that may still be read
	more  bool // a name has more rows than were read
}

// readRows calls f with the rows that may have a hash, within the bounds.
func (n *namesakes) readRows(hash uint64, f func(*Row)) {
	limit := min(n.left, maxNamesakes)
	for r := range n.names.rows.find(hash) {
		if limit == 0 {
			n.more = true
			return
		}

		limit--
		n.left--
		f(r)
	}
}

// readAlike returns the entries with a core of their name that looks like core. It compares, as hashes may collide.
func (n *namesakes) readAlike(core lookalike.Keys) []*Row {
	var found people
	add := func(r *Row) {
		if core.Alike(r.keys.Joined()) || slices.ContainsFunc(lookalike.Cores(r.Name()), core.Alike) {
			found.add(r)
		}
	}

	if core.Shape != "" {
		n.readRows(n.names.hashAlike(core.Shape), add)
	}
	if core.Folded != "" && core.Folded != core.Shape {
		n.readRows(n.names.hashAlike(core.Folded), add)
	}
	return found.allRows()
}

// people holds the newest entries of each list, first the verified and then the others, at most MaxGroup of each.
type people [events.NumLists][2][]*Row

func (p *people) add(r *Row) {
	status := 0
	if !r.Verified() {
		status = 1
	}
	p[r.list][status] = keepNewest(p[r.list][status], r)
}

func (p *people) allRows() (all []*Row) {
	for _, list := range p {
		all = append(append(all, list[0]...), list[1]...)
	}
	return all
}
