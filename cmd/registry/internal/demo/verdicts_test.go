package demo

import (
	"context"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// people are the entries of the demonstration, and a person check over them.
type people struct {
	view           *readmodel.View
	reader         *paste.Reader
	accused, loyal []events.Entry // that are shown
}

func newPeople(t testing.TB) *people {
	t.Helper()
	all, err := Events(time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC))
	require.NoError(t, err)
	renderer, model := readmodel.NewRenderer(), readmodel.New()
	var records []readmodel.Record
	for i, e := range all {
		records = append(records, renderer.Render(uint64(i+1), e.Data))
	}
	p := &people{view: viewOf(model.Apply(records, uint64(len(records)))), reader: paste.NewReader(paste.Config{BaseURL: "https://rejestr.example"})}
	seen := map[string]bool{}
	for _, e := range slices.Backward(all) {
		entry, ok := e.Data.(events.Entry)
		if !ok || seen[entry.EntryID] || p.view.Entry(entry.List, entry.EntryID) == nil {
			continue
		}
		if seen[entry.EntryID] = true; entry.List == events.Legit {
			p.loyal = append(p.loyal, entry)
		} else {
			p.accused = append(p.accused, entry)
		}
	}
	return p
}

// decide is the verdict of a text where ranked search finds nothing.
func (p *people) decide(t rapid.TB, text, id string) verdict.Verdict {
	read := p.reader.Read(text, id)
	found, err := verdict.Find(context.Background(), p.view, &read)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	v := verdict.Decide(p.reader, &read, found)
	v.Rank(&readmodel.RankedPage{})
	return v
}

func (p *people) check(t rapid.TB, text string) verdict.Value { return p.decide(t, text, "").Value }

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
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(p.piece(), 1, 3).Draw(t, "parts"), rapid.SampledFrom([]string{" ", ", ", "\n", "; ", ""}).Draw(t, "joined"))
	})
}

// literal says the rules again, as regular expressions over the whole text.
type literal struct{ p *people }

const (
	labels    = `(?:(?:id|nick|nazwa|dc|discord|serwer)(?:[\s\p{Z}]*:[\s\p{Z}]*|[\s\p{Z}]+)){0,2}`
	separator = `(?:[\s\p{Z}]*[,:;–—|/-][\s\p{Z}]*|[\s\p{Z}]+)`
)

// id matches a literal id.
func (literal) id(id string) string {
	var groups []string
	for at := 0; at < len(id); at += 4 {
		groups = append(groups, id[at:min(at+4, len(id))])
	}
	return labels + `(?:` + id + `|` + strings.Join(groups, " ") + `|<@!?` + id + `>|(?:https?://)?(?:[a-z0-9-]+\.)*discord(?:app)?\.com/users/` + id + `/?)`
}

// green reports whether a text is a literal id of a trusted person, alone or with their name.
func (l literal) green(text string) bool {
	for _, e := range l.p.loyal {
		if !strings.Contains(strings.Map(func(r rune) rune {
			if r == ' ' {
				return -1
			}
			return r
		}, text), e.ChatID) {
			continue
		}
		id := l.id(e.ChatID)
		ids := id + `(?:` + separator + id + `)*`
		folded := lookalike.Literal(text)
		name := labels + `@?` + regexp.QuoteMeta(lookalike.Literal(e.Name))
		inside := func(s string) string { return `\([\s\p{Z}]*` + s + `[\s\p{Z}]*\)` }
		const white = `[\s\p{Z}]*`
		all := []string{ids, ids + separator + name, name + separator + ids, ids + white + inside(name), name + white + inside(ids), inside(name) + white + ids, inside(ids) + white + name}
		if regexp.MustCompile(`(?i)^(?:` + strings.Join(all, "|") + `)$`).MatchString(folded) {
			return true
		}
	}
	return false
}

// isName reports whether a text is the literal name of one of these entries, labels apart.
func isName(text string, of []events.Entry) bool {
	for range 3 {
		for _, s := range []string{text, strings.TrimPrefix(strings.TrimSpace(text), "@")} {
			if slices.ContainsFunc(of, func(e events.Entry) bool { return lookalike.Literal(e.Name) == lookalike.Literal(s) }) {
				return true
			}
		}
		text = strings.TrimSpace(text)
		label := regexp.MustCompile(`(?i)^` + strings.TrimSuffix(labels, "{0,2}")).FindString(text)
		text = text[len(label):]
	}
	return false
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

// redByName reports whether the text, or a line or part of it, is a literal name of an accused.
func (l literal) redByName(text string) bool {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029' })
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' })
	return slices.ContainsFunc(append(append(lines, parts...), text), func(s string) bool { return isName(s, l.p.accused) })
}

// redByID reports whether an accused's id, or the number or the address of their report, can be in the
// text at all.
func (l literal) redByID(text string) bool {
	digits := digitsOf(text)
	return slices.ContainsFunc(l.p.accused, func(e events.Entry) bool {
		return strings.Contains(digits, e.ChatID) || strings.TrimSpace(text) == e.ReportID || strings.Contains(text, "/wpis/"+string(e.List)+"/"+e.EntryID)
	})
}

// gray matches the shape of a text that names no entry.
func (l literal) gray(text string) bool {
	const word = `[\p{L}0-9._-]*\p{L}[\p{L}0-9._-]*`
	const names = labels + `@?` + word + `(?: +(?:` + word + `|\d{1,4})){0,2}|` + labels + `@?\d{1,4} +` + word + `(?: +` + word + `)?`
	const id = labels + `(?:\d{17,20}|\d{4} \d{4} \d{4} \d{4} \d{1,4}(?: \d{1,4})?|<@!?\d{17,20}>|(?:https?://)?(?:[a-z0-9-]+\.)*discord(?:app)?\.com/users/\d{17,20}/?)`
	const ids = id + `(?:` + separator + id + `)*`
	const paren = `[\s\p{Z}]*\([\s\p{Z}]*(?:`
	shape := `(?i)^[,:;–—|/\s-]*(?:` + ids + `|` + names + `|` + ids + separator + `(?:` + names + `)|(?:` + names + `)` + separator + ids +
		`|` + ids + paren + names + `)[\s\p{Z}]*\)|(?:` + names + `)` + paren + ids + `)[\s\p{Z}]*\)|\((?:` + ids + `)\) *(?:` + names + `)|\((?:` + names + `)\) *(?:` + ids + `))[,:;–—|/\s-]*$`
	return regexp.MustCompile(shape).MatchString(norm.NFC.String(text)) && !slices.ContainsFunc(slices.Concat(l.p.accused, l.p.loyal), func(e events.Entry) bool { return strings.Contains(digitsOf(text), e.ChatID) })
}

// No text that is not of rule 2 is green, none that is not of 1 and 3 is red, and none that is not of 6 is
// "nobody", whatever people paste.
func TestOnlyLiteralFormsDecide(t *testing.T) {
	p := newPeople(t)
	l := literal{p}
	seen := map[verdict.Value]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := p.text().Draw(t, "text")
		v := p.decide(t, text, "")
		seen[v.Value]++
		switch text = strings.TrimSpace(text); {
		case v.Value == verdict.Trusted && !l.green(text):
			t.Fatalf("%q is green", text)
		case (v.Value == verdict.Accused || v.Value == verdict.Risk) && v.Reason == verdict.ByID && !l.redByID(text):
			t.Fatalf("%q is red by an id", text)
		case (v.Value == verdict.Accused || v.Value == verdict.Risk) && v.Reason == verdict.ByName && !l.redByName(text):
			t.Fatalf("%q is red by a name", text)
		case v.Value == verdict.TrustedName && v.Reason == verdict.ByName && (!isName(text, p.loyal) || isName(text, p.accused)):
			t.Fatalf("%q is %s", text, v.Value)
		case v.Value == verdict.None && !l.gray(text):
			t.Fatalf("%q is gray", text)
		}
	})
	if seen[verdict.Trusted] == 0 || seen[verdict.Accused] == 0 {
		t.Errorf("only %v were seen", seen)
	}
}

// More text never turns a warning into an all-clear, unless the longer text is one of the literal forms.
func TestMoreTextNeverClears(t *testing.T) {
	p := newPeople(t)
	l := literal{p}
	rapid.Check(t, func(t *rapid.T) {
		text := p.text().Draw(t, "text")
		if !isWarning(p.check(t, text)) {
			return
		}
		joined := rapid.SampledFrom([]string{" ", ", ", "\n", ""}).Draw(t, "joined")
		longer := text + joined + p.text().Draw(t, "after")
		if rapid.Bool().Draw(t, "before") {
			longer = p.text().Draw(t, "first") + joined + longer
		}
		switch v := p.check(t, longer); {
		case v == verdict.None && !l.gray(strings.TrimSpace(longer)), v == verdict.Trusted && !l.green(strings.TrimSpace(longer)), v == verdict.TrustedName && !isName(longer, p.loyal):
			t.Fatalf("%q warns, and %q: %s", text, longer, v)
		}
	})
}

// Every literal name and id of an entry is found when it is typed, and beside a trusted id it is not
// green, unless the name is a label.
func TestEveryNameAndIDIsFound(t *testing.T) {
	p := newPeople(t)
	for i, e := range slices.Concat(p.accused, p.loyal) {
		other := p.loyal[i%len(p.loyal)]
		for what, text := range map[string]string{"name": e.Name, "id": e.ChatID, "number": e.ReportID} {
			if v := p.check(t, text); v.FoundNobody() {
				t.Errorf("%s %q: %s", what, text, v)
			}
			if isLabel := regexp.MustCompile("(?i)^" + labels + "$").MatchString(text + " "); isLabel {
				continue
			}
			if v := p.check(t, text+" "+other.ChatID); other.ChatID != e.ChatID && lookalike.Literal(other.Name) != lookalike.Literal(e.Name) && !isWarning(v) {
				t.Errorf("%s %q beside %s: %s", what, text, other.ChatID, v)
			}
		}
		if e.List != events.Legit {
			if v := p.check(t, e.ChatID); v != verdict.Accused && v != verdict.Risk {
				t.Errorf("%s: %s", e.ChatID, v)
			}
		}
	}
}

// An accused's id in any grouping is a warning, whatever lies between its digits but letters.
func TestEveryGroupingIsFound(t *testing.T) {
	p := newPeople(t)
	between := rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.Is(unicode.Nd, r) && unicode.ToLower(r) == r && r != '<'
	}), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom(p.accused).Draw(t, "accused").ChatID
		var b strings.Builder
		for _, d := range id {
			b.WriteRune(d)
			if rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
				b.WriteString(between.Draw(t, "between"))
			}
		}
		text := rapid.SampledFrom([]string{"", "to on: ", "2 ", "x"}).Draw(t, "before") + b.String() + rapid.SampledFrom([]string{"", " ok", " 50", "."}).Draw(t, "after")
		if v := p.check(t, text); len([]rune(text)) <= 300 && !isWarning(v) {
			t.Fatalf("%q: %s", text, v)
		}
	})
}

// The order of the parts decides nothing.
func TestOrderDecidesNothing(t *testing.T) {
	p := newPeople(t)
	rapid.Check(t, func(t *rapid.T) {
		apart := regexp.MustCompile(`(?:^|[^\p{L}\p{N}])\d{15,20}(?:$|[^\p{L}\p{N}])`)
		one := rapid.Custom(func(t *rapid.T) string { // without a separator or a label in it, and no digits that its neighbors may complete
			s := p.piece().Filter(func(s string) bool {
				return digitsOf(apart.FindString(s)) == digitsOf(s) && strings.TrimSpace(s) != "" && !strings.ContainsAny(s, ",;\n\r\u2028\u2029()") && !regexp.MustCompile(`(?i)^(?:id|nick|nazwa|dc|discord|serwer)\b|[:|/–—-]|\b(?:id|nick|nazwa|dc|discord|serwer)[:\s]*$`).MatchString(s)
			}).Draw(t, "part")
			return strings.TrimSpace(s)
		})
		parts := rapid.SliceOfN(one, 2, 4).Draw(t, "parts")
		join := rapid.SampledFrom([]string{", ", "\n", " ; "}).Draw(t, "joined")
		text, other := strings.Join(parts, join), strings.Join(rapid.Permutation(parts).Draw(t, "order"), join)
		v, w := p.decide(t, text, ""), p.decide(t, other, "")
		for _, f := range slices.Concat(v.Findings, w.Findings) {
			if strings.Contains(f.Name, strings.TrimRight(join, " ")) { // two neighbors are somebody's name
				return
			}
		}
		if v.Value != w.Value {
			t.Fatalf("%q: %s, and %q: %s", text, v.Value, other, w.Value)
		}
	})
}

// BenchmarkHostileTexts is the cost of texts made to be dear: reading, look-ups and decision.
func BenchmarkHostileTexts(b *testing.B) {
	p := newPeople(b)
	rng := rand.New(rand.NewPCG(1, 2))
	distinct := func(separator string, of func(i int) string) string {
		var all []string
		for i := range 300 {
			all = append(all, of(i))
		}
		return string([]rune(strings.Join(all, separator))[:300])
	}
	letter := func(i int) string { return string(rune('a'+i*i%23)) + string(rune('ą'+i%7)) }
	for name, text := range map[string]string{
		"id":           p.loyal[0].ChatID,
		"sentence":     "Czy Leśny Kosmita to ten sam co <@" + p.loyal[0].ChatID + ">?",
		"words":        distinct(" ", func(i int) string { return letter(i)[:1] }),
		"random words": distinct(" ", func(int) string { return string(rune('a' + rng.IntN(26))) }),
		"symbols":      distinct("", func(int) string { return string([]rune("℅%|∞— ◇×™&;a")[rng.IntN(12)]) }),
		"marked":       distinct(" ", letter),
		"dots":         distinct(".", func(i int) string { return letter(i)[:1] }),
		"digits":       distinct(" ", func(i int) string { return fmt.Sprint(i * i % 10) }),
		"parts":        distinct(",", letter),
		"quotes":       distinct("„", letter),
		"addresses":    distinct(" ", func(i int) string { return letter(i)[:1] + ".pl/" }),
		"ligatures":    strings.Repeat("ﷺa,", 100),
		"mathematical": distinct(" ", func(i int) string { return string(rune(0x1d41a + i%26)) }),
		"mentions":     distinct("", func(i int) string { return fmt.Sprintf("<@%d>", i) }),
		"entities":     strings.Repeat("&#97; ", 50),
		"marks":        "a" + strings.Repeat("\u0301\u0328", 149),
		"names":        distinct(" ", func(i int) string { return p.accused[i].Name }),
		"common names": distinct(" ", func(i int) string { return strings.ToLower(p.accused[i%40].Name) }),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.decide(b, text, text)
			}
		})
	}
}

// viewOf drops the losses of Apply.
func viewOf(v *readmodel.View, _ []readmodel.Loss) *readmodel.View { return v }
