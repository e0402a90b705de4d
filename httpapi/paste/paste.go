// Package paste reads what people paste into the search field of the site. It recognizes a few literal
// forms over the whole text, and collects everything that any reading of the text may point to. Start
// with NewReader, then Reader.Read.
//
// # Promises
//
//   - The literal forms are those of httpapi/CONTRACT.md#pastes and no others: nothing is taken off a
//     text but what they name.
//   - Every grouping of digits, and every run of 1 to [MaxWords] words, is looked up, in the text as it
//     was typed and without its escapes and entities.
//   - If the text exceeds the bounds, [Paste.Omitted] is set; nothing is dropped silently.
//
// # Why
//
// Three answers do harm if they are wrong: that an account is trusted, that a name is an accused's, and
// that nobody was found. A reader that explains as much of a text as it can gives them to the texts that
// it explains wrongly. So here only literal forms vouch, accuse by name and clear, and a better reading
// can do no more than warn. Package verdict draws the conclusions.
//
// The API takes its parameters literally, since programs can clean up their own texts; people
// cannot be expected to.
//
// # The parts
//
//   - paste.go: Paste and Reader.
//   - literal.go: ids, labels and separators, and plain names.
//   - readings.go: whatever may warn.
//   - kinds.go: what the registry does not have, such as telephone numbers.
package paste

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel/lookalike"
)

// The bounds of a paste.
const (
	MaxText    = bounds.MaxValue // code points of each field
	MaxIDs     = 20              // literal ones
	MaxLookups = 8000
	MaxWords   = 6  // of a name within a longer text
	MinDigits  = 15 // of an id
	MaxDigits  = 20 // of an id
	minIssued  = 17 // of an id that can be cleared
	maxPlain   = bounds.MaxSearch
)

// Paste is a text, in its literal forms and in its readings.
type Paste struct {
	Text  string // both fields, a line each
	Asked string // from the field for everything, or else from that for an id
	Field string // from the field for an id

	// The literal forms.
	IDs    []string    // literal ids, each once
	Only   bool        // the text is one literal id
	Beside []string    // or one literal id and a name: what the name may be
	Whole  Literal     // the whole text as a name
	Lines  []Literal   // the lines, if there are several
	Parts  []Literal   // the parts between , and ; if there are several
	HasID  bool        // MinDigits to MaxDigits digits in any grouping
	Plain  string      // the only name, if it is plain
	Typed  string      // Plain with its labels, which may be a part of it, or ""
	Alone  bool        // the text is one literal id of minIssued digits or more, with or without Plain
	Near   []string    // ids one digit off the one of Alone
	Own    []Reference // the registry's own addresses of entries
	Server []string    // ids in addresses of servers

	// The readings.
	Accuse  []string // ids that decide if they are an accused's: literal ones, and whole runs of digits
	Maybe   []string // other groupings of digits
	Numbers []string // of reports or entries
	Runs    []Run    // of words

	Unchecked []Token // what no list has
	Omitted   bool    // the text has more than is looked at
}

// Reference is an entry that an address of the registry leads to.
type Reference struct {
	List  events.List
	ID    string
	Whole bool // the address is the whole text
}

// Literal is a text as a name, by the number of labels that are taken off it.
type Literal [maxLabels + 1]struct {
	Text  string   // as typed
	Forms []string // as [lookalike.Literal] returns it, and without an @ before it; none without so many labels
}

// Is reports whether a text is a name, which [lookalike.Literal] has returned.
func (l *Literal) Is(name string) bool {
	for _, form := range l {
		if slices.Contains(form.Forms, name) {
			return true
		}
	}
	return false
}

// Run is a run of words.
type Run struct {
	Text     string // as typed
	Core     lookalike.Keys
	Whole    bool // it is everything in its reading but decoration
	From, To int  // in its reading, which Reading numbers
	Reading  int
}

// Within reports whether a run is a part of another.
func (r *Run) Within(o *Run) bool {
	return r.Reading == o.Reading && o.From <= r.From && r.To <= o.To && r.To-r.From < o.To-o.From
}

// Config configures a Reader.
type Config struct {
	// BaseURL is the site's own address, whose links lead to entries. If empty, it is this
	// machine's.
	BaseURL string
}

// Reader reads pastes. It never changes, and any goroutine may use it.
type Reader struct {
	label, sep, mention, channels, group *regexp.Regexp // literal.go
	own, entry, number                   *regexp.Regexp // readings.go
	place, account, figures, clock       *regexp.Regexp // kinds.go
	steam, elsewhere, inviting           *regexp.Regexp
}

// NewReader returns a reader for texts of users of a Discord-compatible platform.
func NewReader(cfg Config) *Reader {
	const (
		white    = `[\s\p{Z}\x{85}]`
		platform = `(?i:(?:https?://)?(?:[a-z0-9-]+\.)*discord(?:app)?\.com)`
		entry    = `/wpis/(scammers|servers|legit)/([A-Za-z0-9_-]{1,64})`
	)
	own := `(?:localhost|127\.0\.0\.1)(?::\d+)?`
	if u, err := url.Parse(cfg.BaseURL); err == nil && u.Host != "" {
		own = regexp.QuoteMeta(u.Host)
	}
	return &Reader{
		label:    regexp.MustCompile(`^(?i:id|nick|nazwa|dc|discord|serwer)(?:` + white + `*:` + white + `*|` + white + `+)`),
		sep:      regexp.MustCompile(`^` + white + `*[,:;–—|/-]` + white + `*`),
		mention:  regexp.MustCompile(`^<@!?(\d{15,20})>`),
		channels: regexp.MustCompile(`(?:^|[^\p{L}\p{N}_.@/-])(` + platform + `/channels/(\d{1,64}|@me)(/\d{1,20}){0,2})`),
		group:    regexp.MustCompile(`^\d{4} \d{4} \d{4} (?:\d{4} \d{4}|\d{4} \d{1,3}|\d{4}|\d{3})`),

		own:    regexp.MustCompile(`(?:^|[^\p{L}\p{N}_.@/-])(?:(?i:https?://)?(?i:` + own + `)` + entry + `/?)`),
		entry:  regexp.MustCompile(entry),
		number: regexp.MustCompile(`[A-Za-z0-9]+(?:[_./-][A-Za-z0-9]+)*`),

		place:   regexp.MustCompile(`<(?:@&|#)\d+>|<t:-?\d+(?::[A-Za-z])?>|</[^<>:]*:\d+>|<id:[a-z-]+>`),
		account: regexp.MustCompile(`(?i)\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?\b`),
		figures: regexp.MustCompile(`\+?\(?\d(?:[ ()./-]{0,3}\d)*`),
		clock:   regexp.MustCompile(`^(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?$|^(?:[0-3]?\d[./-][0-3]?\d[./-](?:20)?\d\d|20\d\d-[01]\d-[0-3]\d)$`),
		steam:   regexp.MustCompile(`(?i)^STEAM_\d:\d:\d+$`),
		elsewhere: regexp.MustCompile(`(?i)^(?:.*\.)?(?:steamcommunity|facebook|fb|instagram|tiktok|twitter|x|youtube|twitch|roblox|` +
			`snapchat|telegram|t|vinted|allegro|allegrolokalnie|olx|ebay|paypal|reddit|github|messenger|m)\.(?:com|pl|me|tv|net)$`),
		inviting: regexp.MustCompile(`(?i)^(?:(?:discord|dsc|invite)\.gg|discord\.me|\.gg)$`),
	}
}

// Read reads a text and the content of the field for an id as one text. Either may be empty. Both
// are valid UTF-8.
func (rd *Reader) Read(text, id string) (p Paste) {
	text, id = strings.TrimSpace(text), strings.TrimSpace(id)
	p.Text, p.Asked, p.Field = strings.TrimSpace(text+"\n"+id), text, id
	if text == "" {
		p.Asked = id
	}
	for _, field := range [...]string{text, id} {
		p.Omitted = p.Omitted || bounds.Longer(field, MaxText) || bounds.Longer(norm.NFKC.String(field), MaxText)
	}
	rd.readLiterals(&p)
	p.Unchecked = rd.kinds(p.Text)
	b := builder{rd: rd, p: &p, known: map[string]bool{}}
	b.read(text, id)
	rd.readPlain(&p)
	if len(p.IDs) > MaxIDs || b.lookups > MaxLookups {
		p.Omitted = true
	}
	return p
}

// Kind returns the greatest kind of what no list has.
func (p *Paste) Kind() (kind Kind) {
	for _, s := range p.Unchecked {
		kind = max(kind, s.Kind)
	}
	return kind
}

// SingleID reports whether a text is just one id, alone, in a mention or in an address. Looking
// that up needs no turn among searches.
func SingleID(text string) bool {
	if len(text) > 2*bounds.MaxID {
		return false
	}
	_, ok := events.ReferredChatID(text)
	return ok || Digits(text)
}

// Digits reports whether s is one or more of 0 to 9.
func Digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isRun(s string) bool { return len(s) >= MinDigits && len(s) <= MaxDigits }

func appendNew(all []string, s string) []string {
	if slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}
