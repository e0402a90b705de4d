// Package paste reads what people paste into the search field of the site: a mention, an address, a tag, an id with
// spaces in it, a name in quotes. It says under which names and ids somebody may be meant.
//
// # Promises
//
//   - What was typed comes first, as it is, unless it is an id in one of the forms of httpapi/CONTRACT.md#check.
//   - There are at most [MaxReadings] readings, none twice. A name has 1 to [MaxName] code points, an id 1 to 64
//     digits.
//   - Reading takes time linear in the text.
//
// # Why
//
// A search that finds nobody because of a comma is a false all-clear. The API takes its parameters literally, since
// programs can clean up their own texts; the page cannot expect that of people. The readings are looked up side by side
// rather than until one finds somebody: with an id and a nick in one field, either may be listed.
package paste

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// The bounds of a paste.
const (
	MaxReadings = 6
	MaxName     = 100 // code points
	maxID       = 64  // digits of an id that an address or a mention names
	maxIDs      = 2   // ids in one text
	maxParts    = 3   // names in one text
)

// Kind says what a paste is beyond names and ids.
type Kind uint8

// The kinds of a paste. What is not Plain is nobody's name, whatever is found of it.
const (
	Plain      Kind = iota
	Invitation      // an invitation link: it does not say which server it is to
	Place           // a mention of a role or a channel, or the address of a private conversation
	Foreign         // a web or e-mail address, a telephone or bank account number
)

// Reading is one way to understand a paste: as an id or as a name. One of the two is set.
type Reading struct {
	ID   string // exact
	Name string // a name or chat id, or a part of one
}

// Paste is a text with its readings, in the order in which they count.
type Paste struct {
	Text     string // as typed, without surrounding white space
	Kind     Kind
	Readings []Reading // empty: too long for a name, and without an id
}

// Reader reads pastes. It never changes, and any goroutine may use it.
type Reader struct {
	emoji, place, conversation, invitation *regexp.Regexp
	ids                                    [3]*regexp.Regexp // of which the first group is an id
	run, address, mail, number             *regexp.Regexp
	label, word, tag                       *regexp.Regexp
}

// NewReader returns a reader for texts of people who use a Discord-compatible platform.
func NewReader() *Reader {
	return &Reader{
		emoji:        regexp.MustCompile(`<a?:\w+:\d+>`),
		place:        regexp.MustCompile(`<(?:@&|#)\d+>`),
		conversation: regexp.MustCompile(`(?i)\S*/channels/@me\S*`),
		invitation: regexp.MustCompile(`(?i)\S*\b(?:discord(?:app)?\.com/invite|discord\.gg|dsc\.gg|discord\.me|invite\.gg)/\S+|` +
			`\S+://-?/invite/\S+|(?:^|\s)\.gg/\S+`),
		ids: [...]*regexp.Regexp{
			regexp.MustCompile(`<@!?(\d+)>`),
			regexp.MustCompile(`(?i)\S*/users/(\d+)\S*`),
			regexp.MustCompile(`(?i)\S*/channels/(\d+)\S*`),
		},
		run:     regexp.MustCompile(`\d+`),
		address: regexp.MustCompile(`(?i)\S*(?:\w://|\bwww\.|\bdiscord(?:app)?\.com/)\S*`),
		mail:    regexp.MustCompile(`^[^\s@]+@[^\s@]+\.[^\s@.]{2,}$`),
		number:  regexp.MustCompile(`(?i)^(?:\+\d[\d ()-]{7,18}|\d{3}[ -]\d{3}[ -]\d{3}|(?:[A-Z]{2})?\s*\d{2}(?:[ -]?\d{4}){6})$`),
		label: regexp.MustCompile(`(?i)(?:^|[\s,;(|])(?:(?:discord|user)?\s*id|nick|nazwa|login|tag|dc|discord|user|username|użytkownik|` +
			`konto|serwer|profil)\s*[:=]+`),
		word: regexp.MustCompile(`(?i)^(?:id|nick|nazwa|użytkownika?|konto|profil|serwer)(?:\s+|$)|\s+id$`),
		tag:  regexp.MustCompile(`\s*#\s*(?:\d{4}|0)$`),
	}
}

// Read reads a text, which is valid UTF-8.
func (rd *Reader) Read(text string) Paste {
	p := Paste{Text: strings.TrimSpace(text)}
	if id, ok := ID(p.Text); ok {
		p.add(Reading{ID: id})
		return p
	}
	p.add(Reading{Name: p.Text})
	clean := visible(p.Text)
	if rd.mail.MatchString(clean) || rd.number.MatchString(clean) {
		p.Kind = Foreign
		return p
	}
	rest, ids := rd.takeIDs(&p, clean)
	for _, id := range ids {
		p.add(Reading{ID: id})
	}
	p.add(Reading{Name: rd.bare(rest)})
	rd.addParts(&p, rest)
	if p.Kind == Plain && len(ids) == 0 && rd.address.MatchString(clean) && rd.bare(rest) == "" {
		p.Kind = Foreign
	}
	return p
}

// add adds a reading unless it is empty, too long, or there already.
func (p *Paste) add(r Reading) {
	r.Name = strings.TrimSpace(r.Name)
	long := utf8.RuneCountInString(r.Name) > MaxName || len(r.ID) > maxID
	if r == (Reading{}) || long || len(p.Readings) == MaxReadings {
		return
	}
	if !slices.ContainsFunc(p.Readings, func(known Reading) bool { return known.ID == r.ID && fold(known.Name) == fold(r.Name) }) {
		p.Readings = append(p.Readings, r)
	}
}

// addParts adds the names of an enumeration.
func (rd *Reader) addParts(p *Paste, text string) {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;|", r) })
	if len(parts) < 2 {
		return
	}
	for _, part := range parts[:min(len(parts), maxParts)] {
		p.add(Reading{Name: rd.bare(part)})
	}
}

// ID finds the chat id in the forms that the API understands, too: a mention, <@123> or <@!123>, or an http(s) address
// with /users/<digits> in its path.
func ID(s string) (id string, ok bool) {
	if mention, is := strings.CutPrefix(s, "<@"); is {
		id, closed := strings.CutSuffix(strings.TrimPrefix(mention, "!"), ">")
		return id, closed && digits(id)
	}
	if !strings.Contains(s, "/users/") {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	segments := strings.Split(u.Path, "/")
	for i, id := range segments[1:] {
		if segments[i] == "users" && digits(id) {
			return id, true
		}
	}
	return "", false
}

// takeIDs returns the ids in a text, and the text without them, without addresses and without labels. It sets the kind
// of p where the text names a place.
func (rd *Reader) takeIDs(p *Paste, text string) (rest string, ids []string) {
	text = rd.emoji.ReplaceAllString(text, " ")
	for _, kind := range []struct {
		pattern *regexp.Regexp
		is      Kind
	}{{rd.place, Place}, {rd.conversation, Place}, {rd.invitation, Invitation}} {
		if without := kind.pattern.ReplaceAllString(text, " "); without != text {
			text, p.Kind = without, kind.is
		}
	}
	for _, pattern := range rd.ids {
		for _, found := range pattern.FindAllStringSubmatch(text, maxIDs) {
			ids = append(ids, found[1])
		}
		text = pattern.ReplaceAllString(text, " ")
	}
	for _, address := range rd.address.FindAllString(text, maxIDs) {
		_, found := rd.takeRuns(address)
		ids = append(ids, found...)
	}
	text = rd.address.ReplaceAllString(text, " ")
	text = rd.label.ReplaceAllString(text, " ")
	if len(ids) == 0 {
		text, ids = rd.takeRuns(text)
	}
	return rd.word.ReplaceAllString(strings.TrimSpace(text), " "), ids[:min(len(ids), maxIDs)]
}

// isRun reports whether s, which is digits, has as many as an id.
func isRun(s string) bool { return len(s) >= 15 && len(s) <= 20 }

// takeRuns returns the runs of 15 to 20 digits in a text, and the text without them. Where none stands as it is, words of
// digits that follow each other are one run.
func (rd *Reader) takeRuns(text string) (rest string, ids []string) {
	rest = rd.run.ReplaceAllStringFunc(text, func(run string) string {
		if !isRun(run) {
			return run
		}
		ids = append(ids, run)
		return " "
	})
	if len(ids) > 0 {
		return rest, ids
	}
	words := strings.Fields(text)
	for from := 0; from < len(words); from++ {
		run := ""
		for to := from; to < len(words); to++ {
			word := strings.TrimFunc(words[to], func(r rune) bool { return !wordly(r) })
			if run += word; !digits(word) || len(run) > maxID {
				break
			}
			if last := to+1 == len(words) || !digits(strings.TrimFunc(words[to+1], func(r rune) bool { return !wordly(r) })); last && isRun(run) {
				return strings.Join(slices.Concat(words[:from], words[to+1:]), " "), []string{run}
			}
		}
	}
	return text, nil
}

// wordly reports whether r is part of a word.
func wordly(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_'
}

// bare returns a name without what people put around it: @, quotes, brackets, punctuation, emoji, and the number of an
// old tag.
func (rd *Reader) bare(name string) string {
	around := func(r rune) bool { return !wordly(r) }
	name = strings.TrimLeftFunc(strings.TrimFunc(name, around), unicode.IsMark)
	if i := rd.tag.FindStringIndex(name); i != nil {
		name = strings.TrimFunc(name[:i[0]], around)
	}
	return strings.Join(strings.Fields(name), " ")
}

// visible returns a text as one sees it: full-width digits as digits, and without invisible characters.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, norm.NFKC.String(text))
}

func fold(s string) string { return cases.Fold().String(s) }

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
