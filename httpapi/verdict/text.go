package verdict

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
)

// The bounds of a text and of an id.
const (
	MaxText   = 300 // code points that are read for more than ids
	maxWords  = 6   // of a name within a longer text
	minDigits = 15  // of an id
	maxDigits = 20
	minIssued = 17 // digits of an id that can be on no list
	maxNumber = 64 // code points of the number of a report, or of a chat id
)

// text is what somebody pasted, in its literal forms and in its readings.
type text struct {
	whole string // both fields, a line each
	id    string // the whole text is this id
	names []string

	ids   []string // in the text: rule 1
	pages []page   // of entries

	maybe  []string // ids: every other grouping of digits
	words  []string // that may be the number of a report or an old chat id; and the whole text
	blanks []string // words that cannot be seen
	runs   []run    // of words, the longest first
	near   []string // one digit off id
}

// page is the address of the page of an entry.
type page struct {
	text string
	list events.List
	id   string
}

// run is a run of words in a reading.
type run struct {
	text     string
	core     lookalike.Keys
	isWhole  bool // all words of the reading
	reading  int
	from, to int // in the reading
}

// isWithin reports whether a run is a part of another.
func (r run) isWithin(o run) bool {
	return r.reading == o.reading && o.from <= r.from && r.to <= o.to && r.to-r.from < o.to-o.from
}

var (
	address   = regexp.MustCompile(`(?i)(?:https?://)?(?:[a-z0-9-]+\.)*discord(?:app)?\.com/users/\d+/?`)
	entryPath = regexp.MustCompile(`/wpis/(scammers|servers|legit)/([A-Za-z0-9_-]{1,64})`)
	place     = regexp.MustCompile(`<(?:@&|#)\d+>|<t:-?\d+(?::[A-Za-z])?>|</[^<>:]*:\d+>`) // a role, a channel, a time, a command

	digits   = regexp.MustCompile(`\d+`)
	digitRun = regexp.MustCompile(`\d(?:[\s\pZ\x{85}._,/-]*\d)*`) // digits and separators
	letters  = regexp.MustCompile(`\pL+`)
	number   = regexp.MustCompile(`[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*`)
)

// read reads the fields of the page.
func read(search, id string) (t text) {
	t.whole = strings.TrimSpace(strings.TrimSpace(search) + "\n" + strings.TrimSpace(id))
	typed := asciiDigits(t.whole)
	t.ids = idsIn(typed)
	t.pages = pagesIn(t.whole)
	if utf8.RuneCountInString(t.whole) > MaxText {
		t.maybe = groupingsIn(typed)
		return t
	}

	// The literal forms.
	t.id = wholeID(t.whole)
	t.near = oneDigitOff(t.id)
	t.names = slices.Compact([]string{lookalike.Literal(t.whole), lookalike.Literal(strings.TrimPrefix(t.whole, "@"))})

	// The readings: as it was typed, and without entities, escapes and what is invisible.
	plain := lookalike.Visible(lookalike.Unescaped(t.whole))
	t.maybe = append(groupingsIn(typed), groupingsIn(asciiDigits(plain))...)
	if utf8.RuneCountInString(t.whole) <= maxNumber {
		t.words = append(t.words, t.whole)
	}
	for _, reading := range []string{t.whole, typed, asciiDigits(plain)} { // digits of another script end a number, or belong to it
		t.words = append(t.words, wordsIn(reading)...)
	}
	b := runsBuilder{t: &t, cores: map[string]lookalike.Keys{}, known: map[lookalike.Keys]bool{}}
	b.add(0, t.whole)
	b.add(1, asciiDigits(plain))
	slices.SortStableFunc(t.runs, func(a, b run) int { return (b.to - b.from) - (a.to - a.from) })

	t.maybe = slices.DeleteFunc(distinct(t.maybe), func(id string) bool { return slices.Contains(t.ids, id) })
	t.words, t.blanks = distinct(t.words), distinct(t.blanks)
	return t
}

func distinct(all []string) (kept []string) {
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}

// asciiDigits returns a text with the digits of any script as 0 to 9.
func asciiDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r) {
			return r
		}
		zero := r
		for unicode.Is(unicode.Nd, zero-1) { // scripts have their digits in tens, some next to each other
			zero--
		}
		return '0' + (r-zero)%10
	}, text)
}

func isID(digits string) bool { return len(digits) >= minDigits && len(digits) <= maxDigits }

// wholeID returns the id that the whole text is, or "".
func wholeID(text string) string {
	id, ok := events.ReadChatID(text)
	if plain := strings.ReplaceAll(text, " ", ""); plain != text && text == inFours(plain) {
		id, ok = plain, true
	}
	if !ok || !isID(id) || strings.Trim(id, "0123456789") != "" {
		return ""
	}
	return id
}

// inFours returns an id in groups of four.
func inFours(id string) string {
	var groups []string
	for ; len(id) > 4; id = id[4:] {
		groups = append(groups, id[:4])
	}
	return strings.Join(append(groups, id), " ")
}

// isBeside reports whether the whole text is an id before or after a name, with white space and at most one separator
// between them.
func (t *text) isBeside(id, name string) bool {
	isName := func(s string) bool {
		return lookalike.Literal(s) == lookalike.Literal(name) || lookalike.Literal(strings.TrimPrefix(s, "@")) == lookalike.Literal(name)
	}
	forms := []string{id, inFours(id), "<@" + id + ">", "<@!" + id + ">"}
	for _, form := range address.FindAllString(t.whole, -1) {
		if wholeID(form) == id {
			forms = append(forms, form)
		}
	}

	for _, form := range forms {
		if rest, ok := strings.CutPrefix(t.whole, form); ok {
			name := strings.TrimLeftFunc(rest, unicode.IsSpace)
			separator, size := utf8.DecodeRuneInString(name)
			if name != rest && isName(name) || isSeparator(separator) && isName(strings.TrimSpace(name[size:])) {
				return true
			}
		}
		if rest, ok := strings.CutSuffix(t.whole, form); ok {
			name := strings.TrimRightFunc(rest, unicode.IsSpace)
			separator, size := utf8.DecodeLastRuneInString(name)
			if name != rest && isName(name) || isSeparator(separator) && isName(strings.TrimSpace(name[:len(name)-size])) {
				return true
			}
		}
	}
	return false
}

func isSeparator(r rune) bool { return strings.ContainsRune(",:;|/–", r) }

// idsIn returns the ids whose digits stand together, or are all of a run of digits and separators.
func idsIn(text string) (ids []string) {
	for _, run := range digitRun.FindAllString(place.ReplaceAllString(text, "x"), -1) {
		all := digits.FindAllString(run, -1)
		for _, id := range append(all, strings.Join(all, "")) {
			if isID(id) && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// groupingsIn returns every grouping of digits that no letter parts and that is as long as an id.
func groupingsIn(text string) (ids []string) {
	for _, part := range letters.Split(place.ReplaceAllString(text, "x"), -1) {
		groups := digits.FindAllString(part, -1)
		all, from := strings.Join(groups, ""), 0
		for i, first := range groups {
			to := from
			for _, group := range groups[i:] {
				if to += len(group); to-from > maxDigits {
					break
				}
				if to-from >= minDigits {
					ids = append(ids, all[from:to])
				}
			}
			from += len(first)
		}
	}
	return distinct(ids)
}

// pagesIn returns the addresses of entries' pages.
func pagesIn(text string) (pages []page) {
	for _, m := range entryPath.FindAllStringSubmatch(text, -1) {
		pages = append(pages, page{m[0], events.List(m[1]), m[2]})
	}
	return pages
}

// wordsIn returns the words with a digit, which may be the number of a report or a chat id of another form: with and
// without what joins them to others.
func wordsIn(text string) (words []string) {
	text = place.ReplaceAllString(text, " ")
	joined := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;:()\"'„”“<>", r) })
	for _, word := range append(joined, number.FindAllString(text, -1)...) {
		word = strings.TrimRight(word, ".!?")
		if strings.ContainsAny(word, "0123456789") && utf8.RuneCountInString(word) <= maxNumber {
			words = append(words, word)
		}
	}
	return words
}

// runsBuilder collects the runs of words of a text.
type runsBuilder struct {
	t     *text
	cores map[string]lookalike.Keys // of words
	known map[lookalike.Keys]bool   // of runs
}

// add adds the runs of a reading: of the words between any marks but dots, dashes and underscores; of those between
// white space, commas and quotes, for names of marks; and of those between any marks, except that what a dot, a dash or
// an underscore joins to a word is no name alone.
func (b *runsBuilder) add(reading int, text string) {
	apart := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`,;:()"'„”“`, r) }
	isMark := func(r rune) bool { return !lookalike.IsWordly(r) }
	loose := func(r rune) bool { return isMark(r) && !strings.ContainsRune("._-", r) }

	b.addRuns(reading, text, wordsBetween(text, loose), 1)
	b.addRuns(reading, text, wordsBetween(text, apart), 1)
	b.addRuns(reading, text, wordsBetween(text, isMark), 2)
}

// wordsBetween returns where the words of a text begin and end.
func wordsBetween(text string, apart func(rune) bool) (words [][2]int) {
	from := -1
	for at, r := range text + " " {
		switch isApart := apart(r); {
		case isApart && from >= 0:
			words = append(words, [2]int{from, at})
			from = -1
		case !isApart && from < 0:
			from = at
		}
	}
	return words
}

// addRuns adds every run of at least least and at most maxWords words. Longer names may be all words, all of a line, or
// all from the beginning or to the end, beside something else.
func (b *runsBuilder) addRuns(reading int, text string, words [][2]int, least int) {
	// The cores of all words, one after the other, and where those of each word begin. A run has a part of them.
	var shapes, folds strings.Builder
	begins := make([]struct{ shape, fold int }, len(words)+1)
	isBreak := make([]bool, len(words)+1) // between lines
	for i, at := range words {
		core := b.coreOf(text[at[0]:at[1]])
		shapes.WriteString(core.Shape)
		folds.WriteString(core.Folded)
		begins[i+1].shape, begins[i+1].fold = shapes.Len(), folds.Len()
		isBreak[i] = i == 0 || strings.Contains(text[words[i-1][1]:at[0]], "\n")
	}
	isBreak[len(words)] = true

	for n := len(words); n >= least; n-- {
		for from := 0; from+n <= len(words); from++ {
			to := from + n
			if n > maxWords && from > 0 && to < len(words) && !(isBreak[from] && isBreak[to]) {
				continue
			}
			core := lookalike.Keys{Shape: shapes.String()[begins[from].shape:begins[to].shape], Folded: folds.String()[begins[from].fold:begins[to].fold]}
			if core == (lookalike.Keys{}) || b.known[core] {
				continue
			}
			b.known[core] = true
			first, last := words[from][0], words[to-1][1]
			b.t.runs = append(b.t.runs, run{text[first:last], core, n == len(words), reading, first, last})
		}
	}
}

// coreOf returns the core of a word. A word without one is invisible.
func (b *runsBuilder) coreOf(word string) lookalike.Keys {
	core, ok := b.cores[word]
	if !ok {
		core = lookalike.Core(word)
		b.cores[word] = core
		if core == (lookalike.Keys{}) {
			b.t.blanks = append(b.t.blanks, lookalike.Literal(word))
		}
	}
	return core
}

// oneDigitOff returns the ids that differ by one digit, changed, missing or too much, or by two that are swapped.
func oneDigitOff(id string) (near []string) {
	if len(id) < minIssued {
		return nil
	}
	for i := range len(id) + 1 {
		for d := byte('0'); d <= '9'; d++ {
			near = append(near, id[:i]+string(d)+id[i:])
			if i < len(id) && d != id[i] {
				near = append(near, id[:i]+string(d)+id[i+1:])
			}
		}
		if i < len(id) {
			near = append(near, id[:i]+id[i+1:])
		}
		if i > 0 && i < len(id) && id[i] != id[i-1] {
			near = append(near, id[:i-1]+id[i:i+1]+id[i-1:i]+id[i+1:])
		}
	}
	return near
}
