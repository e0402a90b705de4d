package readmodel

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"example.org/registry/events"
	"example.org/registry/readmodel/casefold"
	"example.org/registry/readmodel/reason"
)

// twin is the naive read model: the greatest state of every subject, and a scan and a sort for every
// question. It shares with the real one only Fold and the public JSON of an entry, which have
// tests of their own (look-alike keys it makes itself, out of Unicode's files).
type twin struct {
	similarQuery *twinSimilar
	entries      map[events.Subject]events.Entry
	views        map[events.Subject]int64 // by subject of the entry
	donations    map[string]events.Donation
	gone         map[events.Subject]State
	known        map[events.Subject]State
}

func newTwin() *twin {
	return &twin{newTwinSimilar(), map[events.Subject]events.Entry{}, map[events.Subject]int64{}, map[string]events.Donation{}, map[events.Subject]State{}, map[events.Subject]State{}}
}

// apply does what events.Compare says: the greatest state of a subject is true.
func (w *twin) apply(seq uint64, d events.Data) {
	k := d.Subject()
	if was, ok := w.known[k]; ok && events.Compare(d, was.Data) < 0 {
		return
	}
	w.known[k] = State{seq, d}
	switch d := d.(type) {
	case events.Entry:
		w.entries[k] = d
		delete(w.gone, k)
	case events.Delisting:
		delete(w.entries, k)
		w.gone[k] = State{seq, d}
	case events.Views:
		w.views[events.Entry{List: d.List, EntryID: d.EntryID}.Subject()] = d.Views
	case events.Donation:
		w.donations[d.DonationID] = d
	case events.DonationRemoval:
		delete(w.donations, d.DonationID)
	}
}

func public(es []events.Entry) []json.RawMessage {
	out := []json.RawMessage{}
	for _, e := range es {
		out = append(out, marshalPublic(&e, reason.NewRenderer().HTML(e.Reason)))
	}
	return out
}

func marshal(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// pageJSON, checkJSON and feedJSON are what a query found, in the form of the twin's results.
func pageJSON(p Page) string {
	return marshal(struct {
		Data    []json.RawMessage `json:"data"`
		Total   int               `json:"total"`
		HasMore bool              `json:"hasMore"`
	}{entriesJSON(p.Rows), p.Total, p.HasMore})
}

func entriesJSON(rows []*Row) []json.RawMessage {
	out := []json.RawMessage{}
	for _, r := range rows {
		out = append(out, json.RawMessage(r.JSON()))
	}
	return out
}

func checkJSON(c CheckResult) string {
	type group struct {
		Kind    string            `json:"kind"`
		Entries []json.RawMessage `json:"entries"`
	}
	groups := func(all []Group) []group {
		out := []group{}
		for _, g := range all {
			out = append(out, group{string(g.List), entriesJSON(g.Rows)})
		}
		return out
	}
	return marshal(struct {
		Results  []group           `json:"results"`
		Similar  []group           `json:"similar,omitempty"`
		Imitates []json.RawMessage `json:"imitates,omitempty"`
	}{groups(c.Groups), groups(c.Similar), entriesJSON(c.Imitates)})
}

func feedJSON(p FeedPage) string {
	type change struct {
		Sequence uint64
		List     events.List
		ID       string
		Entry    json.RawMessage `json:",omitempty"`
	}
	changes := []change{}
	for _, c := range p.Changes {
		changes = append(changes, change{c.Sequence, c.List, c.ID, json.RawMessage(c.Row.feedText())})
	}
	return marshal([]any{p.Epoch, p.Since, p.Until, p.UpToDate, changes})
}

func has(text, needle string) bool { return strings.Contains(fold(text), fold(needle)) }

func (w *twin) list(q ListQuery) string {
	var match []events.Entry
	for _, e := range w.entries {
		if e.List == q.List && w.asked(e, q) && w.filtered(e, q) {
			match = append(match, e)
		}
	}
	w.order(match, q.Sort)
	page := match[min(q.Skip, len(match)):]
	page = page[:min(q.Limit, len(page))]
	return marshal(struct {
		Data    []json.RawMessage `json:"data"`
		Total   int               `json:"total"`
		HasMore bool              `json:"hasMore"`
	}{public(page), len(match), q.Skip+len(page) < len(match)})
}

func (w *twin) asked(e events.Entry, q ListQuery) bool {
	if q.ID != "" {
		return e.ChatID == q.ID
	}
	return q.Search == "" || has(e.Name, q.Search) || has(e.ChatID, q.Search) ||
		has(reason.Text(reason.NewRenderer().HTML(e.Reason)), q.Search)
}

func (w *twin) filtered(e events.Entry, q ListQuery) bool {
	if e.List == events.Legit {
		q.Status = StatusVerified
	}
	if q.Status == StatusVerified && !e.Verified || q.Status == StatusRisk && e.Verified {
		return false
	}
	return q.Proofs == ProofsAll || q.Proofs == ProofsWith && e.Proofs.ID != "" || q.Proofs == ProofsPrivate && e.Proofs.Private
}

func (w *twin) order(es []events.Entry, s Sort) {
	polish := collate.New(language.Polish, collate.IgnoreCase)
	slices.SortFunc(es, func(a, b events.Entry) int {
		var c int
		switch s {
		case Newest, Oldest:
			c = a.ReportedAt.Compare(b.ReportedAt)
		case Popular, PopularAsc:
			c = int(w.views[a.Subject()] - w.views[b.Subject()])
		default:
			c = polish.CompareString(a.Name, b.Name)
		}
		if c == 0 {
			c = strings.Compare(a.EntryID, b.EntryID)
		}
		if s == Newest || s == Popular || s == ZA {
			return -c
		}
		return c
	})
}

// total is how many entries match q on all pages.
func (w *twin) total(q ListQuery) (n int) {
	for _, e := range w.entries {
		if e.List == q.List && w.asked(e, q) && w.filtered(e, q) {
			n++
		}
	}
	return n
}

func (w *twin) check(q CheckQuery) string {
	type group struct {
		Kind    string            `json:"kind"`
		Entries []json.RawMessage `json:"entries"`
	}
	groups := []group{}
	for _, l := range events.Lists() {
		match := w.ranked(l, q)
		if len(match) > 0 && (l != events.Legit || len(groups) == 0) {
			groups = append(groups, group{string(l), public(match)})
		}
	}
	answer := struct {
		Results  []group           `json:"results"`
		Similar  []group           `json:"similar,omitempty"`
		Imitates []json.RawMessage `json:"imitates,omitempty"`
	}{Results: groups}
	for _, l := range []events.List{events.Scammers, events.Servers} {
		if match := w.similar(l, q); len(match) > 0 {
			answer.Similar = append(answer.Similar, group{string(l), public(match)})
		}
	}
	if match := w.imitated(q); len(match) > 0 {
		answer.Imitates = public(match)
	}
	return marshal(answer)
}

func (w *twin) ranked(l events.List, q CheckQuery) []events.Entry {
	ranks := map[int][]events.Entry{}
	for _, e := range w.entries {
		if e.List != l || l == events.Legit && !e.Verified {
			continue
		}
		if rank := twinRank(e, q); rank > 0 {
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

func twinRank(e events.Entry, q CheckQuery) int {
	name, chat, needle := fold(e.Name), fold(e.ChatID), fold(q.Search)
	switch {
	case q.ID != "":
		if e.ChatID == q.ID {
			return 1
		}
		return 0
	case chat == needle:
		return 1
	case name == needle:
		return 2
	case strings.HasPrefix(name, needle):
		return 3
	case strings.Contains(name, needle):
		return 4
	case strings.Contains(chat, needle):
		return 5
	}
	return 0
}

// twinSimilar is the naive twin of look-alikes: the contract's sentences one by one, with maps out
// of Unicode's files, and every entry asked.
type twinSimilar struct {
	confusable map[rune]string
	ignorable  map[rune]bool

	mu    sync.Mutex           // tests share one
	known map[string][2][]rune // by text, since tests ask for few texts and often
}

// newTwinSimilar reads the files once.
func newTwinSimilar() *twinSimilar { return readTwinLikeness() }

var readTwinLikeness = sync.OnceValue(func() *twinSimilar {
	w := &twinSimilar{confusable: map[rune]string{}, ignorable: map[rune]bool{}, known: map[string][2][]rune{}}
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
	text, err := os.ReadFile(filepath.Join("lookalike", "unicode", file))
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
func (w *twinSimilar) keys(s string) [2][]rune {
	w.mu.Lock()
	defer w.mu.Unlock()
	if keys, ok := w.known[s]; ok {
		return keys
	}
	var visible []rune
	for _, r := range norm.NFKC.String(s) {
		if !w.ignorable[r] {
			visible = append(visible, r)
		}
	}
	first := w.markless(casefold.String(w.skeleton(string(visible))))
	second := w.markless(w.skeleton(casefold.String(string(visible))))
	w.known[s] = [2][]rune{first, second}
	return w.known[s]
}

func (w *twinSimilar) skeleton(s string) string {
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

func (w *twinSimilar) markless(s string) (out []rune) {
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
	digits := strings.TrimFunc(fold(q.Search), unicode.IsDigit) == ""
	if q.ID != "" || digits {
		return nil
	}
	search, ranks := w.similarQuery.keys(q.Search), map[int][]events.Entry{}
	for _, e := range w.entries {
		if e.List != l || twinRank(e, q) > 0 {
			continue
		}
		rank := 0
		for i, name := range w.similarQuery.keys(e.Name) {
			if r := twinSimilarRank(string(name), string(search[i]), len(name), len(search[i]), !e.Verified); r > 0 && (rank == 0 || r < rank) {
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

// imitated is who of legit the search only looks like.
func (w *twin) imitated(q CheckQuery) (out []events.Entry) {
	if q.ID != "" || strings.TrimFunc(fold(q.Search), unicode.IsDigit) == "" {
		return nil
	}
	search := w.similarQuery.keys(q.Search)
	for _, e := range w.entries {
		if e.List != events.Legit || !e.Verified || strings.Contains(fold(e.Name), fold(q.Search)) {
			continue
		}
		name := w.similarQuery.keys(e.Name)
		if len(search[0]) > 0 && string(search[0]) == string(name[0]) || len(search[1]) > 0 && string(search[1]) == string(name[1]) {
			out = append(out, e)
		}
	}
	w.order(out, Newest)
	return out[:min(20, len(out))]
}

func twinSimilarRank(name, search string, nameLen, searchLen int, risk bool) int {
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
