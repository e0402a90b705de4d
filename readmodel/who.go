package readmodel

import (
	"context"
	"hash/maphash"
	"slices"
	"unicode"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/readmodel/btree"
	"example.org/registry/readmodel/casefold"
	"example.org/registry/readmodel/lookalike"
)

// WithID returns the entries with exactly this chat id: the newest verified and the newest
// unverified ones of each list, at most MaxGroup of each. A flood of unconfirmed reports therefore
// cannot hide a confirmed one.
func (v *View) WithID(id string) []*Row {
	var found people
	v.withChatID(id, func(_ int, r *Row) { found.add(r, sameName) })
	return found.rows()
}

// WithNumber returns the entries with this entry id, or with this report number.
func (v *View) WithNumber(number string) (found []*Row) {
	for _, l := range events.Lists() {
		if r := v.Entry(l, number); r != nil {
			found = append(found, r)
		}
	}
	v.similarNames.find(v.similarNames.reportHash(number), func(ref RowRef) bool {
		if r := v.Row(ref); r.reportID() == number && r.shown() && !slices.Contains(found, r) {
			found = append(found, r)
		}
		return len(found) < MaxGroup
	})
	return found
}

// Namesake is an entry found by name.
type Namesake struct {
	Row   *Row
	Alike bool // the name only looks alike: letters, marks or separators differ
}

// The bounds of WithNames, in rows read. They keep it below a millisecond.
const (
	maxNamesakes    = 1000 // of one name
	maxAllNamesakes = 3000 // of all names
)

// WithNames returns, for each name, the entries with that name or with one that a person could take
// for it: the look-alike key is the same, apart from separators and decoration
// ([lookalike.AppendCore]). Of each list it returns the verified and the unverified entries, at
// most MaxGroup of each. Entries with exactly the name come first, then names that differ only in
// invisible characters or decoration, then the newest. The names must be in the form that
// [lookalike.Visible] returns. WithNames reads no text and waits for no index. Its result is
// incomplete if a name has more rows than it reads. Its only error is ctx's.
func (v *View) WithNames(ctx context.Context, names []string) (found [][]Namesake, complete bool, err error) {
	found, complete = make([][]Namesake, len(names)), true
	words, left := wordKeys{}, maxAllNamesakes
	for i, name := range names {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		sought := soughtName{keys: words.keysOf(name), name: name}
		read := min(left, maxNamesakes)
		var who people
		look := func(ref RowRef) bool {
			if read--; read < 0 {
				complete = false
				return false
			}
			left--
			r := v.Row(ref)
			if rank, ok := sought.rank(r); ok {
				who.add(r, rank)
			}
			return true
		}
		shape, folded := v.similarNames.wholeOf(sought.keys.Shape), v.similarNames.wholeOf(sought.keys.Folded)
		v.similarNames.find(shape, look)
		if folded != shape {
			v.similarNames.find(folded, look)
		}
		found[i] = who.namesakes()
	}
	return found, complete, nil
}

// wordKeys caches the keys of words, and of the text between them, since many names of a batch
// share them. Apart from white space, which no core has, the keys of a name are those of its
// pieces, concatenated.
type wordKeys map[string]lookalike.Keys

func (w wordKeys) keysOf(name string) lookalike.Keys {
	var shape, folded []byte
	for rest := name; rest != ""; {
		first, _ := utf8.DecodeRuneInString(rest)
		at, word := len(rest), isWordly(first)
		for i, r := range rest {
			if isWordly(r) != word {
				at = i
				break
			}
		}
		k, ok := w[rest[:at]]
		if !ok {
			k = lookalike.KeysOf(rest[:at]).Joined()
			w[rest[:at]] = k
		}
		shape, folded = append(shape, k.Shape...), append(folded, k.Folded...)
		rest = rest[at:]
	}
	if len(shape) == 0 || len(folded) == 0 {
		return lookalike.KeysOf(name)
	}
	return lookalike.Keys{Shape: string(shape), Folded: string(folded)}
}

func isWordly(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r)
}

// soughtName is a name to compare rows with.
type soughtName struct {
	keys                     lookalike.Keys
	name                     string
	shape, key, folded, bare string // made when the first row is compared
}

// The ranks of a namesake, the nearest first.
const (
	sameName = iota // folded
	bareName        // equal when folded, apart from invisible characters and decoration
	alikeName
	numNameRanks
)

func (s *soughtName) rank(r *Row) (rank int, ok bool) {
	if s.folded == "" {
		s.shape, s.key = core(s.keys.Shape), core(s.keys.Folded)
		s.folded, s.bare = fold(s.name), bareFolded(s.name)
	}
	switch name := r.foldedName(); {
	case name == s.folded:
		return sameName, true
	case bareFolded(name) == s.bare:
		return bareName, true
	}
	k := r.keys()
	return alikeName, core(k.Shape) == s.shape || core(k.Folded) == s.key
}

func core(key string) string { return string(lookalike.AppendCore(nil, key)) }

func bareFolded(name string) string {
	return casefold.String(lookalike.Bare(lookalike.Visible(name)))
}

// reportHash returns the hash of a report number, under which rows are stored.
func (x *similarIndex) reportHash(number string) uint64 { return maphash.String(x.reports, number) }

// find calls f with the rows stored under a hash, in ascending order, until it returns false.
func (x *similarIndex) find(hash uint64, f func(RowRef) bool) {
	x.tree.AscendFrom(hash, func(it btree.Item) bool { return it.Key == hash && f(RowRef(it.Slot)) })
}

// people holds the entries found, by list, verification and rank.
type people [events.NumLists][2][numNameRanks][]*Row

func (p *people) add(r *Row, rank int) {
	if !r.shown() {
		return
	}
	of := &p[r.list][0][rank]
	if !r.Verified() {
		of = &p[r.list][1][rank]
	}
	*of = keepNewest(*of, r)
}

// namesakes returns the entries found, at most MaxGroup verified and MaxGroup unverified of each
// list.
func (p *people) namesakes() (found []Namesake) {
	for _, list := range p {
		for _, ranks := range list {
			room := MaxGroup
			for rank, rows := range ranks {
				for _, r := range rows[:min(len(rows), room)] {
					found = append(found, Namesake{r, rank == alikeName})
				}
				room -= min(len(rows), room)
			}
		}
	}
	return found
}

func (p *people) rows() (found []*Row) {
	for _, n := range p.namesakes() {
		found = append(found, n.Row)
	}
	return found
}
