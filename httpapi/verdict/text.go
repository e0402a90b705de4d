package verdict

import (
	"iter"
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
	MaxText   = 300 // code points; of a longer text only the ids and addresses are looked up
	maxWords  = 6   // of a name within a longer text
	minDigits = 15  // of an id
	maxDigits = 20  // of an id
	minIssued = 17  // digits; the answer to a shorter id never says that the id is on no list
	maxNumber = 64  // code points of the number of a report, or of a chat id
)

// text is a pasted text, in its literal forms and in its readings.
type text struct {
	whole string // both fields, a line each

	// The literal forms.
	id    string      // the id that the whole text is, or ""
	names []string    // the whole text as a literal name, with and without an @ before it
	ids   []string    // every id in the text, for rule 1
	pages []entryPage // every entry's page whose address is in the text

	// The readings.
	groupings []string // ids that neighboring groups of digits make when they are joined; none is in ids
	numbers   []string // what may be the number of a report, or an old chat id: the whole text, and every word with a digit
	blanks    []string // invisible words, as literal names
	runs      []run    // the longest first
}

// entryPage is the address of an entry's page, and the entry that it names.
type entryPage struct {
	address string
	list    events.List
	entryID string
}

// run is a word, or successive words, of the text as pasted or as meant (its two readings). A run may be a name.
type run struct {
	text     string
	core     lookalike.Keys // finds the names that look like the run
	isWhole  bool           // the run has all words of the reading
	reading  int            // the index of the reading among the two: the text as pasted, and as meant
	from, to int            // where the run begins and ends in the reading, in bytes
}

// isWithin reports whether r is a part of other, and shorter than other.
func (r run) isWithin(other run) bool {
	isInside := other.from <= r.from && r.to <= other.to
	isShorter := r.to-r.from < other.to-other.from
	return r.reading == other.reading && isInside && isShorter
}

var (
	address   = regexp.MustCompile(`(?i)(?:https?://)?(?:[a-z0-9-]+\.)*discord(?:app)?\.com/users/\d+/?`)
	entryPath = regexp.MustCompile(`/wpis/(scammers|servers|legit)/([A-Za-z0-9_-]{1,64})`)
	// mention matches a mention of a role, a channel, a time or a command, whose digits are no account's id.
	mention = regexp.MustCompile(`<(?:@&|#)\d+>|<t:-?\d+(?::[A-Za-z])?>|</[^<>:]*:\d+>`)

	digits      = regexp.MustCompile(`\d+`)
	digitSeries = regexp.MustCompile(`\d(?:[\s\pZ\x{85}._,/-]*\d)*`) // groups of digits, with separators between them
	letters     = regexp.MustCompile(`\pL+`)
	fours       = regexp.MustCompile(`\d{1,4}`)
	isInFours   = regexp.MustCompile(`^(?:\d{4} )+\d{1,4}$`)

	number = regexp.MustCompile(`[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*`)
	joined = regexp.MustCompile(`[^\s\v\x{85}\pZ,;:()"'„”“<>]+`) // a number, with the other marks that touch it
)

// readText reads the fields of the page.
func readText(search, id string) text {
	whole := strings.TrimSpace(strings.TrimSpace(search) + "\n" + strings.TrimSpace(id))
	typed := withASCIIDigits(whole)
	t := text{
		whole:     whole,
		ids:       idsIn(typed),
		pages:     pagesIn(whole),
		groupings: groupingsIn(typed),
	}

	length := utf8.RuneCountInString(whole)
	if length > MaxText {
		return t
	}

	// The other literal forms.
	t.id = wholeID(whole)
	t.names = slices.Compact([]string{lookalike.Literal(whole), lookalike.Literal(strings.TrimPrefix(whole, "@"))})

	// The readings. meant is the text without HTML entities, escapes and invisible characters.
	meant := withASCIIDigits(lookalike.Visible(lookalike.Unescaped(whole)))
	isKnownID := func(id string) bool { return slices.Contains(t.ids, id) }
	t.groupings = distinct(append(t.groupings, groupingsIn(meant)...))
	t.groupings = slices.DeleteFunc(t.groupings, isKnownID)

	if length <= maxNumber {
		t.numbers = append(t.numbers, whole)
	}

	// Read all three texts: typed and meant have digits of other scripts as 0 to 9, but in whole such a digit ends a number.
	t.numbers = distinct(slices.Concat(t.numbers, numbersIn(whole), numbersIn(typed), numbersIn(meant)))

	t.runs, t.blanks = runsIn(whole, meant)
	return t
}

// pagesIn returns the pages of entries whose addresses are in a text.
func pagesIn(text string) (pages []entryPage) {
	for _, match := range entryPath.FindAllStringSubmatch(text, -1) {
		pages = append(pages, entryPage{address: match[0], list: events.List(match[1]), entryID: match[2]})
	}
	return pages
}

// distinct returns the elements of all, each once.
func distinct[E comparable](all []E) (kept []E) {
	seen := map[E]bool{}
	for _, e := range all {
		if !seen[e] {
			seen[e] = true
			kept = append(kept, e)
		}
	}
	return kept
}

// withASCIIDigits returns a text with the digits of any script as 0 to 9.
func withASCIIDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r) {
			return r
		}

		// A script has ten digits in a row, from zero to nine. The rows of some scripts touch, so first may be the zero of
		// an earlier row. It is then a multiple of ten away from the right zero, and the remainder is the same.
		first := r
		for unicode.Is(unicode.Nd, first-1) {
			first--
		}
		return '0' + (r-first)%10
	}, text)
}

func isID(digits string) bool { return len(digits) >= minDigits && len(digits) <= maxDigits }

// wholeID returns the id that the whole text is, or "".
func wholeID(text string) string {
	// Pages show an id in groups of four, so people copy this form.
	if isInFours.MatchString(text) {
		text = strings.ReplaceAll(text, " ", "")
	}

	// An address with a query or a fragment may have more in it than the id.
	id, _ := events.ReadChatID(text)
	hasMore := strings.ContainsAny(text, "?#") || id != digits.FindString(id)
	if hasMore || !isID(id) {
		return ""
	}
	return id
}

// isBeside reports whether the whole text is an id and a name, in either order, with white space and at most one separator
// between them.
func (t *text) isBeside(id, name string) bool {
	// The id is its digits, its digits in groups of four, a mention, or an address of the user.
	forms := []string{id, strings.Join(fours.FindAllString(id, -1), " "), "<@!?" + id + ">"}
	for _, found := range address.FindAllString(t.whole, -1) {
		if wholeID(found) == id {
			forms = append(forms, regexp.QuoteMeta(lookalike.Literal(found)))
		}
	}

	// The literal form of the text has a single space for white space.
	const between = "(?: | ?[,:;|/–] ?)"
	anyForm := "(?:" + strings.Join(forms, "|") + ")"
	typedName := "(?:@ ?)?" + regexp.QuoteMeta(lookalike.Literal(name))
	beside := regexp.MustCompile("^(?:" + anyForm + between + typedName + "|" + typedName + between + anyForm + ")$")
	return beside.MatchString(lookalike.Literal(t.whole))
}

// idsIn returns the ids in a text: each group of digits, and the digits of groups with nothing but separators between them.
func idsIn(text string) (ids []string) {
	for _, series := range digitSeries.FindAllString(withoutMentions(text), -1) {
		groups := digits.FindAllString(series, -1)
		ids = append(ids, groups...)
		ids = append(ids, strings.Join(groups, ""))
	}
	return distinct(slices.DeleteFunc(ids, func(id string) bool { return !isID(id) }))
}

// withoutMentions returns a text with a letter in place of each mention, so that no digits are joined across a mention.
func withoutMentions(text string) string { return mention.ReplaceAllString(text, "x") }

// groupingsIn joins neighboring groups of digits in every way, but not across a letter, and returns the results that are as
// long as an id.
func groupingsIn(text string) (ids []string) {
	for _, part := range letters.Split(withoutMentions(text), -1) {
		groups := digits.FindAllString(part, -1)
		for from := range groups {
			id := ""
			for to := from; to < len(groups) && len(id) <= maxDigits; to++ {
				id += groups[to]
				if isID(id) {
					ids = append(ids, id)
				}
			}
		}
	}

	return distinct(ids)
}

// numbersIn returns the words with a digit, which may be the number of a report or an old chat id. It cuts the text into words
// in two ways: at white space and marks such as commas (joined), and at every mark but - and _ (number).
func numbersIn(text string) (words []string) {
	text = mention.ReplaceAllString(text, " ")
	for _, word := range append(joined.FindAllString(text, -1), number.FindAllString(text, -1)...) {
		word = strings.TrimRight(word, ".!?")
		if strings.ContainsAny(word, "0123456789") && utf8.RuneCountInString(word) <= maxNumber {
			words = append(words, word)
		}
	}
	return words
}

// A text is cut into words in three ways. First, dots, dashes and underscores are parts of a word. Second, all marks are
// parts of a word, except commas, colons, parentheses and quotes: a name may have nothing but marks. Third, every mark
// ends a word, and a single word makes no run.
var wordings = []struct {
	word  *regexp.Regexp
	least int // how many words a run has at least
}{
	{regexp.MustCompile(`[\pL\pN\pM._-]+`), 1},
	{regexp.MustCompile(`[^\s\v\x{85}\pZ,;:()"'„”“]+`), 1},
	{regexp.MustCompile(`[\pL\pN\pM]+`), 2},
}

// runsIn cuts each reading into words in the three ways of wordings. It returns the runs of these words, the longest first,
// and the invisible words. Of several runs with equal keys (run.core), it returns only the first.
func runsIn(readings ...string) (runs []run, blanks []string) {
	cores := map[string]lookalike.Keys{} // by word, since the readings and wordings have many words in common

	// The empty core counts as known, so that invisible words alone make no run.
	known := map[lookalike.Keys]bool{{}: true}
	for i, reading := range readings {
		for _, wording := range wordings {
			s := cutWords(reading, wording.word, cores)
			blanks = append(blanks, s.blanks...)
			for r := range s.runs(wording.least) {
				if !known[r.core] {
					known[r.core] = true
					r.reading = i
					runs = append(runs, r)
				}
			}
		}
	}

	slices.SortStableFunc(runs, func(a, b run) int { return (b.to - b.from) - (a.to - a.from) })
	return runs, distinct(blanks)
}

// sentence is a text that is cut into words. The cores of all words are joined, so that the core of a run is a substring and
// no copy: a hostile text has thousands of runs.
type sentence struct {
	text       string
	words      [][]int        // where each word begins and ends in text
	blanks     []string       // the invisible words, as literal names
	cores      lookalike.Keys // of all words, joined
	coreBegins []corePosition // where the core of each word begins in cores; the last is the end of cores
}

// corePosition is a position in the two keys of cores.
type corePosition struct{ shape, folded int }

// cutWords cuts a text into the words that a pattern matches. It takes the core of a word from cores, or adds it there.
func cutWords(text string, pattern *regexp.Regexp, cores map[string]lookalike.Keys) *sentence {
	s := &sentence{text: text, words: pattern.FindAllStringIndex(text, -1), coreBegins: []corePosition{{}}}
	for _, at := range s.words {
		word := text[at[0]:at[1]]
		if _, ok := cores[word]; !ok {
			cores[word] = lookalike.Core(word)
		}

		core := cores[word]
		isInvisible := core == lookalike.Keys{}
		if isInvisible {
			s.blanks = append(s.blanks, lookalike.Literal(word))
		}
		s.cores.Shape += core.Shape
		s.cores.Folded += core.Folded
		s.coreBegins = append(s.coreBegins, corePosition{shape: len(s.cores.Shape), folded: len(s.cores.Folded)})
	}
	return s
}

// runs returns the runs of at least minWords words, the most words first. A run of more than maxWords words is the whole
// text, its beginning, its end, or whole lines.
func (s *sentence) runs(minWords int) iter.Seq[run] {
	return func(yield func(run) bool) {
		for n := len(s.words); n >= minWords; n-- {
			for first := range len(s.words) - n + 1 {
				after := first + n // the word after the run
				isInside := first > 0 && after < len(s.words)
				if n > maxWords && isInside && !s.areLines(first, after) {
					continue
				}
				if !yield(s.newRun(first, after)) {
					return
				}
			}
		}
	}
}

// newRun returns the run of s.words[first:after].
func (s *sentence) newRun(first, after int) run {
	begin := s.coreBegins[first]
	end := s.coreBegins[after]
	core := lookalike.Keys{Shape: s.cores.Shape[begin.shape:end.shape], Folded: s.cores.Folded[begin.folded:end.folded]}

	from := s.words[first][0]
	to := s.words[after-1][1]
	return run{text: s.text[from:to], core: core, isWhole: after-first == len(s.words), from: from, to: to}
}

// areLines reports whether a run of words is whole lines: a line break comes before the first word of the run, and another
// before the word after it. There are words before and after the run.
func (s *sentence) areLines(first, after int) bool {
	isBreakBefore := func(word int) bool {
		between := s.text[s.words[word-1][1]:s.words[word][0]]
		return strings.Contains(between, "\n")
	}
	return isBreakBefore(first) && isBreakBefore(after)
}

// oneDigitOff returns the ids that a typing mistake can make of an id: one digit is changed, missing or added, or two
// neighboring digits are swapped.
func oneDigitOff(id string) (near []string) {
	if len(id) < minIssued {
		return nil
	}

	for i := range len(id) + 1 {
		before := id[:i]
		after := id[i:]
		for _, d := range "0123456789" {
			near = append(near, before+string(d)+after) // added
			if after != "" {
				near = append(near, before+string(d)+after[1:]) // changed
			}
		}
		if after != "" {
			near = append(near, before+after[1:]) // missing
		}
		if len(after) > 1 {
			near = append(near, before+after[1:2]+after[:1]+after[2:]) // swapped
		}
	}

	// Drop the id itself, which results from changing a digit to the same digit, or swapping two equal ones.
	return slices.DeleteFunc(near, func(other string) bool { return other == id })
}
