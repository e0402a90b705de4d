package readmodel

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
)

// Question has all lookups of a person check. An [Answer] has the same fields, with the rows found for each
// element.
type Question struct {
	IDs      []string         // chat ids, exact
	Numbers  []string         // entry ids, or numbers of reports in capital or small letters
	Literals []string         // names to find literally, as [lookalike.Literal] returns them
	Cores    []lookalike.Keys // names to find with look-alikes, as [lookalike.Core] returns them
}

// Answer has the entries for each element of a [Question]. From a list come at most MaxGroup verified and MaxGroup
// unverified entries, the newest ones. A flood of unconfirmed reports therefore cannot hide a confirmed one.
type Answer struct {
	IDs, Numbers, Literals, Cores [][]*Row
	// MoreLiterals and MoreCores say that some literal name or core has more rows than were read.
	MoreLiterals, MoreCores bool
}

// The most rows that are read for the literals of a question. The same bounds hold once more for its cores.
const (
	maxNamesakes    = 1000 // with one hash
	maxAllNamesakes = 3000 // with all hashes
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

	for _, number := range q.Numbers {
		a.Numbers = append(a.Numbers, v.findNumber(number))
	}

	// Very many entries may have the same name, so read only a bounded number of rows.
	literals := namesakes{names: &v.names, left: maxAllNamesakes}
	for _, literal := range q.Literals {
		a.Literals = append(a.Literals, literals.readLiteral(literal))
	}

	cores := namesakes{names: &v.names, left: maxAllNamesakes}
	for _, core := range q.Cores {
		if ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		a.Cores = append(a.Cores, cores.readAlike(core))
	}

	a.MoreLiterals = literals.more
	a.MoreCores = cores.more
	return a, ctx.Err()
}

// findNumber returns the rows whose entry id or report has this number, at most MaxGroup.
func (v *View) findNumber(number string) (found []*Row) {
	for _, l := range events.Lists() {
		if r := v.Entry(l, number); r != nil {
			found = append(found, r)
		}
	}

	for r := range v.names.rows.find(v.names.hashReport(number)) {
		if len(found) >= MaxGroup {
			break
		}

		if strings.EqualFold(r.ReportID(), number) && !slices.Contains(found, r) { // hashes may collide
			found = append(found, r)
		}
	}
	return found
}

// names finds shown rows by hashes: of the literal name, of each core of the name, and of the number of the report.
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

// hashesOf returns the hashes under which r is found, some perhaps twice. A name without decoration has one core,
// its joined keys.
func (x *names) hashesOf(r *Row) (all []uint64) {
	name := r.Name()
	all = append(make([]uint64, 0, 8), x.hashReport(r.ReportID()), x.hashLiteral(lookalike.Literal(name)))

	cores := []lookalike.Keys{r.keys.Joined()}
	// Look at both forms of the name: folding turns ™ into letters, and ⑴ into (1).
	if strings.ContainsFunc(name, isDecoration) || strings.ContainsFunc(r.folded, isDecoration) {
		cores = append(cores, lookalike.Cores(name)...)
	}

	for _, core := range cores {
		for _, key := range core.Distinct() {
			all = append(all, x.hashAlike(key))
		}
	}
	return all
}

// isDecoration reports whether r, in a name or its folded form, may give the name more cores than its joined keys. A
// space or a visible part of a word gives none.
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

// readLiteral returns the entries with a literal name. It compares, since hashes may collide.
func (n *namesakes) readLiteral(literal string) []*Row {
	var found people
	n.readRows(n.names.hashLiteral(literal), func(r *Row) {
		if lookalike.Literal(r.Name()) == literal {
			found.add(r)
		}
	})
	return found.allRows()
}

// readAlike returns the entries whose name, with or without its decoration, looks like core. It compares, since hashes
// may collide.
func (n *namesakes) readAlike(core lookalike.Keys) []*Row {
	var found people
	for _, key := range core.Distinct() {
		n.readRows(n.names.hashAlike(key), func(r *Row) {
			isAlike := core.Alike(r.keys.Joined()) || slices.ContainsFunc(lookalike.Cores(r.Name()), core.Alike)
			if isAlike {
				found.add(r)
			}
		})
	}
	return found.allRows()
}

// people holds the newest entries of each list: at index 0 the verified ones, at index 1 the others. It holds at
// most MaxGroup of each.
type people [events.NumLists][2][]*Row

func (p *people) add(r *Row) {
	group := &p[r.list][0]
	if !r.Verified() {
		group = &p[r.list][1]
	}
	*group = keepNewest(*group, r)
}

func (p *people) allRows() (all []*Row) {
	for _, list := range p {
		all = append(append(all, list[0]...), list[1]...)
	}
	return all
}
