package readmodel

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"example.org/registry/events"
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
		v.withChatID(id, found.add)
		a.IDs[i] = found.rows()
	}
	for i, number := range q.Numbers {
		a.Numbers[i] = v.withNumber(number)
	}
	names, left := &v.names, maxAllNamesakes
	for i, literal := range q.Literals {
		var found people
		ok := v.findNamed(names.literalHash(literal), &left, func(r *Row) {
			if lookalike.Literal(r.Name()) == literal {
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
		add := func(r *Row) {
			if core.Alike(r.keys.Joined()) || slices.ContainsFunc(lookalike.Cores(r.Name()), core.Alike) {
				found.add(r)
			}
		}
		ok := core.Shape == "" || v.findNamed(names.alikeHash(core.Shape), &left, add)
		if core.Folded != "" && core.Folded != core.Shape {
			ok = v.findNamed(names.alikeHash(core.Folded), &left, add) && ok
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
	v.eachWith(v.names.refs, v.names.reportHash(number), func(r *Row) bool {
		if strings.EqualFold(r.ReportID(), number) && !slices.Contains(found, r) {
			found = append(found, r)
		}
		return len(found) < MaxGroup
	})
	return found
}

// names finds shown rows by the hash of their literal name, of what a person could take their name for,
// and of the number of their report.
type names struct {
	alike, literal, reports maphash.Seed // random, so that no publisher can choose names that collide
	refs                    *refs
}

func newNames() names {
	return names{alike: maphash.MakeSeed(), literal: maphash.MakeSeed(), reports: maphash.MakeSeed(), refs: &refs{}}
}

func (x *names) link(r *Row) {
	for _, hash := range x.hashes(r) {
		x.refs.Insert(refOf(hash, r))
	}
}

func (x *names) unlink(r *Row) {
	for _, hash := range x.hashes(r) {
		x.refs.Delete(refOf(hash, r))
	}
}

// hashes returns the hashes under which r is found, some of them twice.
func (x *names) hashes(r *Row) (all []uint64) {
	name := r.Name()
	all = append(make([]uint64, 0, 8), x.reportHash(r.ReportID()), x.literalHash(lookalike.Literal(name)))
	cores := []lookalike.Keys{r.keys.Joined()}
	if strings.ContainsFunc(name, isDecoration) || strings.ContainsFunc(r.folded, isDecoration) {
		cores = append(cores, lookalike.Cores(name)...)
	}
	for _, core := range cores {
		for _, key := range [...]string{core.Shape, core.Folded} {
			if key != "" {
				all = append(all, x.alikeHash(key))
			}
		}
	}
	return all
}

// isDecoration reports whether r, in a name or a folded name, may make a core of the name differ from its
// joined keys.
func isDecoration(r rune) bool {
	return r != ' ' && (!lookalike.IsWordly(r) || lookalike.Invisible(r))
}

func (x *names) alikeHash(key string) uint64       { return maphash.String(x.alike, key) }
func (x *names) literalHash(literal string) uint64 { return maphash.String(x.literal, literal) }
func (x *names) reportHash(number string) uint64 {
	return maphash.String(x.reports, strings.ToLower(number))
}

// findNamed calls f with the rows that have a hash, at most maxNamesakes and left, and reports whether
// that is all. It counts them off left.
func (v *View) findNamed(hash uint64, left *int, f func(*Row)) bool {
	read, all := min(*left, maxNamesakes), true
	v.eachWith(v.names.refs, hash, func(r *Row) bool {
		if read--; read < 0 {
			all = false
			return false
		}
		*left--
		f(r)
		return true
	})
	return all
}

// people holds the entries found, by list and verification, at most MaxGroup of each. It is nil until
// the first one.
type people struct{ found *[events.NumLists][2][]*Row }

func (p *people) add(r *Row) {
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
