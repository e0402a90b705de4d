package readmodel

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"example.org/registry/events"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// twinLikeness is the naive twin of look-alikes: the contract's sentences one by one, with maps out
// of Unicode's files, and every entry asked.
type twinLikeness struct {
	confusable map[rune]string
	ignorable  map[rune]bool
	known      map[string][2][]rune // by text, since tests ask for few texts and often
}

// newTwinLikeness reads the files once.
func newTwinLikeness() *twinLikeness { return readTwinLikeness() }

var readTwinLikeness = sync.OnceValue(func() *twinLikeness {
	w := &twinLikeness{map[rune]string{}, map[rune]bool{}, map[string][2][]rune{}}
	for _, f := range lines("confusables.txt", `^([0-9A-F]+) ;\t([0-9A-F ]+) ;\tMA`) {
		target := ""
		for _, hex := range strings.Fields(f[2]) {
			target += string(codePoint(hex))
		}
		w.confusable[codePoint(f[1])] = target
	}
	for _, f := range lines("DefaultIgnorable.txt", `^([0-9A-F]+)(?:\.\.([0-9A-F]+))? *; Default`) {
		last := f[2]
		if last == "" {
			last = f[1]
		}
		for r := codePoint(f[1]); r <= codePoint(last); r++ {
			w.ignorable[r] = true
		}
	}
	return w
})

func lines(file, form string) (found [][]string) {
	text, err := os.ReadFile(filepath.Join("lookalike", "testdata", file))
	if err != nil {
		panic(err)
	}
	return regexp.MustCompile("(?m)"+form).FindAllStringSubmatch(string(text), -1)
}

func codePoint(hex string) rune {
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		panic(err)
	}
	return rune(n)
}

// keys are the key and the second key of the contract.
func (w *twinLikeness) keys(s string) [2][]rune {
	if keys, ok := w.known[s]; ok {
		return keys
	}
	var visible []rune
	for _, r := range norm.NFKC.String(s) {
		if !w.ignorable[r] {
			visible = append(visible, r)
		}
	}
	fold := cases.Fold()
	first := w.markless(fold.String(w.skeleton(string(visible))))
	second := w.markless(w.skeleton(fold.String(string(visible))))
	w.known[s] = [2][]rune{first, second}
	return w.known[s]
}

func (w *twinLikeness) skeleton(s string) string {
	out := ""
	for _, r := range norm.NFD.String(s) {
		if target, ok := w.confusable[r]; ok {
			out += target
		} else {
			out += string(r)
		}
	}
	return norm.NFD.String(out)
}

func (w *twinLikeness) markless(s string) (out []rune) {
	for _, r := range norm.NFD.String(s) {
		if i := slices.Index([]rune("łøđ"), r); i >= 0 {
			r = []rune("lod")[i]
		}
		if !unicode.IsMark(r) {
			out = append(out, r)
		}
	}
	return out
}

// similar is the group of list l.
func (w *twin) similar(l events.List, q CheckQuery) []events.Entry {
	digits := strings.TrimFunc(Fold(q.Search), unicode.IsDigit) == ""
	if q.ID != "" || digits {
		return nil
	}
	search, ranks := w.likeness.keys(q.Search), map[int][]events.Entry{}
	for _, e := range w.entries {
		if e.List != l || twinRank(e, q) > 0 {
			continue
		}
		rank := 0
		for i, name := range w.likeness.keys(e.Name) {
			if r := twinAlike(string(name), string(search[i]), len(name), len(search[i]), !e.Verified); r > 0 && (rank == 0 || r < rank) {
				rank = r
			}
		}
		if rank > 0 {
			ranks[rank] = append(ranks[rank], e)
		}
	}
	var out []events.Entry
	for _, rank := range slices.Sorted(maps.Keys(ranks)) {
		w.order(ranks[rank], Newest)
		out = append(out, ranks[rank]...)
	}
	return out[:min(20, len(out))]
}

func twinAlike(name, search string, nameLen, searchLen int, risk bool) int {
	switch {
	case searchLen < 3 || searchLen*2 < nameLen:
		return 0
	case name == search:
		return 1
	case risk:
		return 0
	case strings.HasPrefix(name, search):
		return 2
	case strings.Contains(name, search):
		return 3
	}
	return 0
}
