package demo

import (
	"context"
	"html"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// people are the entries of the demonstration, and a person check over them.
type people struct {
	view                *readmodel.View
	accused, loyal      []events.Entry  // that are shown
	badNames, goodNames map[string]bool // literal
}

func newPeople(t testing.TB) *people {
	t.Helper()
	p := &people{view: newModel(t).View(), badNames: map[string]bool{}, goodNames: map[string]bool{}}
	seen := map[string]bool{}
	for _, e := range slices.Backward(mustEvents(t)) {
		entry, ok := e.Data.(events.Entry)
		if !ok || seen[entry.EntryID] || p.view.Entry(entry.List, entry.EntryID) == nil {
			continue
		}
		if seen[entry.EntryID] = true; entry.List == events.Legit {
			p.loyal = append(p.loyal, entry)
			p.goodNames[lookalike.Literal(entry.Name)] = true
		} else {
			p.accused = append(p.accused, entry)
			p.badNames[lookalike.Literal(entry.Name)] = true
		}
	}
	return p
}

func (p *people) check(t testing.TB, text string) verdict.Value {
	v, err := verdict.Check(context.Background(), p.view, text, "")
	require.NoError(t, err, "%q", text)
	return v.Value
}

func isWarning(v verdict.Value) bool {
	return v == verdict.Accused || v == verdict.Risk || v == verdict.Caution
}

// disguised are the ways in which people and programs change a name.
func disguised(name string) map[string]string {
	reversed := []rune(name)
	slices.Reverse(reversed)
	words := strings.Fields(name)
	slices.Reverse(words)
	return map[string]string{
		"as it is": name, "upper": strings.ToUpper(name), "lower": strings.ToLower(name), "spaced": strings.ReplaceAll(name, " ", "   "), "joined": strings.ReplaceAll(name, " ", ""),
		"quoted": "„" + name + "”", "starred": "**" + name + "**", "tag": name + "#1234", "bot": name + "BOT", "emoji": name + " ✅", "mention": "@" + name, "label": "nick: " + name,
		"NFD": norm.NFD.String(name), "entities": html.EscapeString(name), "escaped": url.PathEscape(name), "zero width": strings.ReplaceAll(name, "a", "a\u200b"),
		"Cyrillic": strings.NewReplacer("a", "а", "o", "о", "e", "е").Replace(name), "no marks": strings.Map(plainLetter, name), "reversed": string(reversed), "swapped": strings.Join(words, " "),
		"cut": name[:len(name)-len(string(reversed[0]))], "grown": name + "s", "support": name + " Support", "inside": "xX" + name + "Xx", "bar": "x | " + name, "slash": name + "/x",
	}
}

func plainLetter(r rune) rune {
	if at := slices.Index([]rune("ąćęłńóśźż"), unicode.ToLower(r)); at >= 0 {
		return []rune("acelnoszz")[at]
	}
	return r
}

// written are the ways in which people write an id.
func written(id string) map[string]string {
	var groups []string
	for at := 0; at < len(id); at += 4 {
		groups = append(groups, id[at:min(at+4, len(id))])
	}
	return map[string]string{
		"digits": id, "grouped": strings.Join(groups, " "), "mention": "<@" + id + ">", "old mention": "<@!" + id + ">", "profile": "https://discord.com/users/" + id, "bare profile": "discord.com/users/" + id + "/",
		"label": "ID: " + id, "two labels": "discord id " + id, "dashes": strings.Join(groups, "-"), "dots": strings.Join(groups, "."), "lines": strings.Join(groups, "\n"), "threes": id[:3] + " " + id[3:],
		"Arabic": strings.Map(func(r rune) rune { return r - '0' + '٠' }, id), "full width": strings.Map(func(r rune) rune { return r - '0' + '０' }, id), "elsewhere": "https://nagroda.pl/users/" + id, "query": "https://discord.com/users/" + id + "?x=1",
		"touched": "x" + id, "zero width": id[:5] + "\u200b" + id[5:], "quoted": "`" + id + "`", "at": "@" + id, "own": "https://rejestr.example/?id=" + id, "stop": id + ".", "bars": strings.Join(groups, "|"),
	}
}

// around is what people write around names and ids.
func around() []string {
	return []string{
		"oszust", "czy to jest", "i", "tak", "pls", "xD", "600 700 800", "+48 600 700 801", "PL61109010140000071219812874", "4111 1111 1111 1111", "https://example.org/x", "nagroda . shop", "tg:resolve",
		"sklep.онлайн", "http://[2001:db8::1]/login", "ja@example.org", "😀", "✅", "— wczoraj o 21:37", "[21:37]", "nick:", "ID", "@everyone", "#ogólny", "@ktoś", "<@&1>", "<#99>", "<t:1700000000:R>", "</x:12>", "…", "50 zł", "#1234",
		"712345678912345678", "x712345678912345678", "<@712345678912345678>", "dealer_pro", "???", "\u200b", "\"", "(", ")", "13:59 07:50 08:12 02:40", "dziewięć zero", "9,90E+19", "http://discord.gg/abc", "steamcommunity.com/id/ktos",
	}
}

// values draws from a map whose order does not matter.
func values(m map[string]string) *rapid.Generator[string] {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return rapid.Map(rapid.SampledFrom(keys), func(k string) string { return m[k] })
}

// piece draws a part of a text.
func (p *people) piece() *rapid.Generator[string] {
	everyone := slices.Concat(p.accused, p.loyal)
	odd := slices.Collect(func(yield func(events.Entry) bool) {
		for _, e := range everyone {
			if strings.HasPrefix(e.EntryID, "demo-o") && !yield(e) {
				return
			}
		}
	})
	entry := rapid.OneOf(rapid.SampledFrom(everyone), rapid.SampledFrom(p.loyal), rapid.SampledFrom(odd))
	return rapid.OneOf(
		rapid.SampledFrom(around()),
		rapid.Custom(func(t *rapid.T) string { return values(disguised(entry.Draw(t, "entry").Name)).Draw(t, "name") }),
		rapid.Custom(func(t *rapid.T) string { return values(written(entry.Draw(t, "entry").ChatID)).Draw(t, "id") }),
		rapid.Custom(func(t *rapid.T) string { // a trusted person, as they are
			e := rapid.SampledFrom(p.loyal).Draw(t, "trusted")
			return e.Name + rapid.SampledFrom([]string{" ", ", ", "\n", " - "}).Draw(t, "between") + e.ChatID
		}),
		rapid.Map(entry, func(e events.Entry) string { return e.ReportID }),
		rapid.Map(entry, func(e events.Entry) string {
			return "https://rejestr.example/wpis/" + string(e.List) + "/" + e.EntryID
		}),
		rapid.StringN(0, 12, 40),
	)
}

func (p *people) text() *rapid.Generator[string] {
	pieces := rapid.SliceOfN(p.piece(), 1, 3)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(pieces.Draw(t, "parts"), rapid.SampledFrom([]string{" ", ", ", "\n", "; ", ""}).Draw(t, "joined"))
	})
}

// texts is how many generated texts a property is tried with: all of them where REGISTRY_TEXTS says so (the nightly
// gate), else a part.
func texts() int {
	if n, err := strconv.Atoi(os.Getenv("REGISTRY_TEXTS")); err == nil {
		return n
	}
	if eventstest.RaceDetector { // which makes a text ten times as slow, and one goroutine checks them
		return 500
	}
	return 2000
}

// separator is what may stand between an id and its owner's name.
const separator = `(?:[\s\p{Z}]*[,:;–|/][\s\p{Z}]*|[\s\p{Z}]+)`

// literalID is a pattern of the literal forms of an id.
func literalID(id string) string {
	var groups []string
	for at := 0; at < len(id); at += 4 {
		groups = append(groups, id[at:min(at+4, len(id))])
	}
	return `(?:` + id + `|` + strings.Join(groups, " ") + `|<@!?` + id + `>|(?:https?://)?(?:[a-z0-9.-]+\.)*discord(?:app)?\.com/users/` + id + `/?)`
}

// isGreen reports whether a text is a literal id of a trusted person, alone or with their name.
func (p *people) isGreen(text string) bool {
	folded := lookalike.Literal(text)
	joined := strings.ReplaceAll(folded, " ", "")
	for _, e := range p.loyal {
		if !strings.Contains(joined, e.ChatID) {
			continue
		}
		id, name := literalID(e.ChatID), `@?`+regexp.QuoteMeta(lookalike.Literal(e.Name))
		if regexp.MustCompile(`(?i)^(?:` + strings.Join([]string{id, id + separator + name, name + separator + id}, "|") + `)$`).MatchString(folded) {
			return true
		}
	}
	return false
}

// isName reports whether a text is one of these literal names.
func isName(text string, names map[string]bool) bool {
	text = strings.TrimSpace(text)
	return names[lookalike.Literal(text)] || names[lookalike.Literal(strings.TrimPrefix(text, "@"))]
}

// digitsOf are the digits of a text, whatever lies between them.
func digitsOf(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.Is(unicode.Nd, r) {
			return -1
		}
		zero := r
		for unicode.Is(unicode.Nd, zero-1) {
			zero--
		}
		return '0' + (r-zero)%10
	}, text)
}

// isRed reports whether a text can be of rules 1 and 3: an accused's id, the address of their page or the number of their
// report, or their name.
func (p *people) isRed(text string) bool {
	digits := digitsOf(text)
	return isName(text, p.badNames) && !isName(text, p.goodNames) || slices.ContainsFunc(p.accused, func(e events.Entry) bool {
		return strings.Contains(digits, e.ChatID) || strings.TrimSpace(text) == e.ReportID || strings.TrimSpace(text) == e.ChatID ||
			strings.Contains(text, "/wpis/"+string(e.List)+"/"+e.EntryID)
	})
}

// isGray reports whether a text is one id, of nobody.
func (p *people) isGray(text string) bool {
	text = strings.TrimSpace(text)
	id := digitsOf(text)
	return len(id) >= 17 && len(id) <= 20 && regexp.MustCompile(`(?i)^`+literalID(id)+`$`).MatchString(text) &&
		!slices.ContainsFunc(slices.Concat(p.accused, p.loyal), func(e events.Entry) bool { return e.ChatID == id })
}

// No text that is not of rule 2 is green, none that is not of 1 or 3 is red, and none that is not of 6 is "none", whatever
// people paste.
func TestOnlyLiteralFormsDecide(t *testing.T) {
	p := newPeople(t)
	seen := map[verdict.Value]int{}
	text := p.text()
	for i := range texts() {
		text := text.Example(i)
		v := p.check(t, text)
		seen[v]++
		if v == verdict.Trusted && !p.isGreen(strings.TrimSpace(text)) ||
			(v == verdict.Accused || v == verdict.Risk) && !p.isRed(text) ||
			v == verdict.TrustedName && (!isName(text, p.goodNames) || isName(text, p.badNames)) ||
			v == verdict.None && !p.isGray(text) {
			t.Errorf("text %d, %q: %s", i, text, v)
		}
	}
	for _, v := range verdict.Values() {
		if seen[v] == 0 {
			t.Errorf("no text was %s: %v", v, seen)
		}
	}
}

// More text never turns a warning into an all-clear, unless the longer text is one of the literal forms.
func TestMoreTextNeverClears(t *testing.T) {
	p := newPeople(t)
	type pair struct{ text, longer string }
	some := p.text()
	pairs := rapid.Custom(func(t *rapid.T) (d pair) {
		joined := rapid.SampledFrom([]string{" ", ", ", "\n", ""}).Draw(t, "joined")
		d.text = some.Draw(t, "text")
		d.longer = d.text + joined + some.Draw(t, "after")
		if rapid.Bool().Draw(t, "before") {
			d.longer = some.Draw(t, "first") + joined + d.longer
		}
		return d
	})
	warned := 0
	for i := range texts() {
		d := pairs.Example(i)
		if !isWarning(p.check(t, d.text)) {
			continue
		}
		warned++
		v := p.check(t, d.longer)
		if v == verdict.None && !p.isGray(d.longer) || v == verdict.Trusted && !p.isGreen(strings.TrimSpace(d.longer)) || v == verdict.TrustedName && !isName(d.longer, p.goodNames) {
			t.Errorf("text %d, %q warns, and %q: %s", i, d.text, d.longer, v)
		}
	}
	if warned < texts()/4 {
		t.Errorf("only %d texts warned", warned)
	}
}

// Every literal name, id and number of an entry is found when it is typed, and beside a trusted person's id none is green.
func TestEveryNameAndIDIsFound(t *testing.T) {
	p := newPeople(t)
	for i, e := range slices.Concat(p.accused, p.loyal) {
		other := p.loyal[i%len(p.loyal)]
		for what, text := range map[string]string{"name": e.Name, "id": e.ChatID, "number": e.ReportID} {
			if v := p.check(t, text); v == verdict.None || v == verdict.Unchecked {
				t.Errorf("%s %q: %s", what, text, v)
			}
			if v := p.check(t, text+" "+other.ChatID); other.ChatID != e.ChatID && lookalike.Literal(other.Name) != lookalike.Literal(e.Name) && !isWarning(v) {
				t.Errorf("%s %q beside %s: %s", what, text, other.ChatID, v)
			}
		}
		if v := p.check(t, e.ChatID); e.List != events.Legit && v != verdict.Accused && v != verdict.Risk {
			t.Errorf("%s: %s", e.ChatID, v)
		}
	}
}

// An accused's id in any grouping is a warning, whatever lies between its digits but letters.
func TestEveryGroupingIsFound(t *testing.T) {
	p := newPeople(t)
	between := rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.Is(unicode.Nd, r) && unicode.ToLower(r) == r && r != '<'
	}), 0, 6, -1)
	grouped := rapid.Custom(func(t *rapid.T) string {
		id := rapid.SampledFrom(p.accused).Draw(t, "accused").ChatID
		var b strings.Builder
		for _, d := range id {
			b.WriteRune(d)
			if rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
				b.WriteString(between.Draw(t, "between"))
			}
		}
		return rapid.SampledFrom([]string{"", "to on: ", "2 ", "x", strings.Repeat("x ", 200)}).Draw(t, "before") + b.String() + rapid.SampledFrom([]string{"", " ok", " 50", "."}).Draw(t, "after")
	})
	for i := range texts() {
		if text := grouped.Example(i); !isWarning(p.check(t, text)) {
			t.Errorf("text %d, %q: %s", i, text, p.check(t, text))
		}
	}
}
