package paste

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.org/registry/readmodel/lookalike"
)

// Config configures a Reader.
type Config struct {
	// BaseURL is the site's own address, whose links lead to entries. If empty, it is this
	// machine's.
	BaseURL string
	// IsWord reports whether a word, case folded, is one of the language: such a word of a sentence
	// is no name. If nil, no word is.
	IsWord func(folded string) bool
}

// Reader reads pastes. It never changes, and any goroutine may use it.
type Reader struct {
	own    string // host
	isWord func(folded string) bool

	shorthand, emoji, mention, place, marker, address  *regexp.Regexp
	platform, inviting, user, server, talk, elsewhere  *regexp.Regexp
	entries, steam, entry, number, mail, account, when *regexp.Regexp
	field, label, glued, trailing, listed, quoted, at  *regexp.Regexp
	badge                                              *regexp.Regexp
}

// labels are the words that people write before a name or an id; labeled matches what may follow
// them.
const (
	labels = `(?:discord|user)?\s*id|nick(?:u|iem|name)?|nazwa|login|tag|dc|discord|user|username|użytkowni(?:k|ka|czka)|` +
		`konto|serwer|server|profil|gracz|osoba|ksywk?a|pseudonim`
	labeled = `(?:\s+(?:użytkownika|konta|serwera|oszusta|na\s+(?:dc|discordzie)))?`
	clock   = `(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?:\s*[ap]m)?\b`
	date    = `(?:[0-3]?\d[./-][0-3]?\d[./-](?:20)?\d\d|20\d\d-[01]\d-[0-3]\d)`
	day     = `(?:przedwczoraj|wczoraj|dzisiaj|dziś|yesterday|today)`
)

// NewReader returns a reader for texts of users of a Discord-compatible platform.
func NewReader(cfg Config) *Reader {
	rd := &Reader{
		isWord:    cfg.IsWord,
		shorthand: regexp.MustCompile(`(?i)<a?:\w+:\d{15,20}>|[^\s,;|()<>\[\]{}"'&?!~]*/\?(?:search|id)=[^\s,;|()<>\[\]{}"]*|&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]\w{1,7});|(?:%[0-9a-f]{2})+|\[\.\]|\(\.\)|\[dot\]|\(dot\)|。|hxxps?://`),
		emoji:     regexp.MustCompile(`<a?:(\w+):(\d{15,20})>`),
		mention:   regexp.MustCompile(`<@!?(\d{1,64})>`),
		place:     regexp.MustCompile(`(<(?:@&|#)\d{1,20}>|<t:-?\d{1,13}(?::[A-Za-z])?>)|</[^<>:]*(:\d{1,20})>|<id:[a-z-]+>|^#[\p{L}_-][\p{L}\p{N}_-]*$|^@(?:everyone|here)$`),
		marker:    regexp.MustCompile(`<(?:t|id):[^<>]*>`),
		address:   regexp.MustCompile(`^(?:([A-Za-z][A-Za-z0-9+.-]*)://)?([^/?#\\]*)([^?#]*)(.*)$`),
		platform:  regexp.MustCompile(`(?i)^(?:-|(?:[a-z]+\.)?discord(?:app)?\.com)$`),
		inviting:  regexp.MustCompile(`(?i)^(?:(?:discord|dsc|invite)\.gg|discord\.me|\.gg)$`),
		user:      regexp.MustCompile(`^/users/(\d{1,64})/*$`),
		server:    regexp.MustCompile(`^/channels/(\d{1,64})(?:/\d{1,20}){0,2}/*$`),
		talk:      regexp.MustCompile(`^/channels/@me(?:/\d{1,20}){0,2}/*$`),
		elsewhere: regexp.MustCompile(`(?i)^(?:.*\.)?(?:steamcommunity|facebook|fb|instagram|tiktok|twitter|x|youtube|twitch|roblox|` +
			`snapchat|telegram|t|vinted|allegro|allegrolokalnie|olx|ebay|paypal|reddit|github|messenger|m)\.(?:com|pl|me|tv|net)$`),
		steam:   regexp.MustCompile(`(?i)^STEAM_\d:\d:\d+$`),
		entry:   regexp.MustCompile(`^/wpis/(scammers|servers|legit)/([\w-]{1,64})/*$`),
		entries: regexp.MustCompile(`/wpis/(scammers|servers|legit)/([\w-]{1,64})`),
		number:  regexp.MustCompile(`[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*`),
		mail:    regexp.MustCompile(`^(?:mailto:)?[\p{L}\p{N}._%+-]+@([\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+)$`),
		account: regexp.MustCompile(`(?i)\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?\b`),
		when: regexp.MustCompile(`(?i)(?:\s[-–—]\s+)?(?:\[(?:` + date + `,?\s*)?` + clock + `\]|` + day + `(?:,?\s+(?:o|at))?\s+` + clock + `|\b` + date + `,?\s+(?:o\s+|at\s+)?` + clock +
			`|\b` + clock + `|\b` + date + `\b)`),
		field:    regexp.MustCompile(`(?i)(?:^|[\s,;(|/])((?:` + labels + `)` + labeled + `\s*[:=]+)`),
		label:    regexp.MustCompile(`(?i)^(?:` + labels + `)` + labeled + `(?:\s*[:=]+\s*|\s+to:?\s+|\s+[-–—]\s+|\s+|-+|$)`),
		glued:    regexp.MustCompile(`(?i)(?:^|[^\p{L}\p{N}_])id$`),
		trailing: regexp.MustCompile(`(?i)\s+id\s*[-:=]*$`),
		badge:    regexp.MustCompile(`.(?:BOT|APP)$`),
		listed:   regexp.MustCompile(`(?m)^\s*\d{1,2}[.)]\s`),
		quoted:   regexp.MustCompile("[\"„”“«»]([^\"„”“«»]+)[\"„”“«»]|\\(([^()]+)\\)|\\[([^\\[\\]]+)\\]|\\{([^{}]+)\\}|<([^<>]+)>|[`*_]+([^`*]+?)[`*_]+|(?:^|\\s)['’‘]([^'’‘]+)['’‘]"),
		at:       regexp.MustCompile(`(?:^|[^\p{L}\p{N}_.@])@([^\s,;|/()\[\]{}<>"„”“«»@][^\s,;|/()\[\]{}<>"„”“«»]*)`),
	}
	if u, err := url.Parse(cfg.BaseURL); err == nil {
		rd.own = u.Host
	}
	return rd
}

// Read reads a text and the content of the field for an id as one text. Either may be empty. Both
// are valid UTF-8.
func (rd *Reader) Read(text, id string) (p Paste) {
	text, id = strings.TrimSpace(text), strings.TrimSpace(id)
	p.Text, p.Asked = strings.TrimSpace(text+"\n"+id), text
	if text == "" {
		p.Asked = id
	}
	x := &reading{rd: rd, p: &p, known: map[string]int{}, parts: map[Span]bool{}}
	var cut int
	x.cleaned, cut, p.Omitted = rd.cleanedText(cutTo(p.Text, MaxText))
	if cut < len(p.Text) {
		p.Omitted = true
		x.cleaned.at[len(x.cleaned.at)-1] = cut
	}
	x.readMentions()
	x.readAddresses()
	x.readTimes()
	for _, m := range x.rd.account.FindAllStringIndex(x.text, -1) {
		if iban(x.text[m[0]:m[1]]) {
			x.claim(Span{m[0], m[1]}, Unchecked, Account)
		}
	}
	x.readDigits()
	for _, m := range x.rd.field.FindAllStringSubmatchIndex(x.text, -1) {
		x.claim(Span{m[2], m[3]}, Filler, Plain)
	}
	x.readNames()
	x.readNumbers()
	x.readRemnants()
	x.finish(cut)
	return p
}

// readTimes reads times and dates as chats copy them, and the numbers of lists. Digits that touch
// more digits are part of a number.
func (x *reading) readTimes() {
	for _, m := range append(x.rd.when.FindAllStringIndex(x.text, -1), x.rd.listed.FindAllStringIndex(x.text, -1)...) {
		s := Span{m[0], m[1]}
		if !within(x.bars, s) && !x.isNumber(s.From) && !x.isNumber(s.To) {
			x.claim(s, Filler, Plain)
			x.asides, x.masks = append(x.asides, s), append(x.masks, s)
		}
	}
}

// isNumber reports whether a position is inside a number: at most a mark separates the digits
// before and after it.
func (x *reading) isNumber(at int) bool {
	const marks = "-.:/"
	before, _ := utf8.DecodeLastRuneInString(strings.TrimRight(x.text[:at], marks))
	after, _ := utf8.DecodeRuneInString(strings.TrimLeft(x.text[at:], marks))
	return unicode.IsDigit(before) && unicode.IsDigit(after)
}

// cutTo returns the first n code points of s.
func cutTo(s string, n int) string {
	for at := range s {
		if n--; n < 0 {
			return s[:at]
		}
	}
	return s
}

// reading is a text being read. Its spans are those of the cleaned text.
type reading struct {
	rd *Reader
	cleaned
	p       *Paste
	claims  []Stretch // more than words, in the order of discovery
	bars    []Span    // whose digits are no id, or added already
	masks   []Span    // whose words are in no name
	loose   []Span    // whose digits only may be an id
	asides  []Span    // whose digits count only for a listed id
	known   map[string]int
	parts   map[Span]bool // added already
	ids     int           // number of typed ids
	lookups int
}

// claim makes a stretch of a span unless a part of it is one already.
func (x *reading) claim(s Span, what What, kind Kind) {
	for _, c := range x.claims {
		if c.From < s.To && s.From < c.To {
			return
		}
	}
	x.claims = append(x.claims, Stretch{s, what, kind})
}

// understood claims a mention or an address whose meaning is known: it contains nothing else.
func (x *reading) understood(s Span, kind Kind) {
	x.claim(s, Identity, kind)
	x.bars, x.masks = append(x.bars, s), append(x.masks, s)
}

// seekID adds an id. Beyond MaxIDs it only may be one.
func (x *reading) seekID(s Sought) {
	if _, known := x.known[idKey(s)]; s.How == Typed && !known {
		if x.ids++; x.ids > MaxIDs {
			x.p.Omitted = true
			s.How = Maybe
		}
	}
	x.add(s)
}

// add adds something to look up. If it was added before, add only records another span.
func (x *reading) add(s Sought) {
	keys := []string{idKey(s)}
	if len(s.Names) > 0 {
		keys = s.Names
	}
	i, ok := x.known[keys[0]]
	for _, k := range keys[1:] {
		if also, known := x.known[k]; !known || also != i {
			ok = false
		}
	}
	if ok {
		old := &x.p.Sought[i]
		old.How, old.Server, old.Short = min(old.How, s.How), old.Server && s.Server, old.Short && s.Short
		for _, raw := range s.Raw {
			if !slices.Contains(old.Raw, raw) {
				old.Raw = append(old.Raw, raw)
			}
		}
		old.Spans = append(old.Spans, s.Spans...)
		return
	}
	if x.lookups += len(keys); x.lookups > MaxLookups {
		x.p.Omitted = true
		return
	}
	for _, k := range keys {
		if _, known := x.known[k]; !known {
			x.known[k] = len(x.p.Sought)
		}
	}
	s.Spans = slices.Clone(s.Spans)
	x.p.Sought = append(x.p.Sought, s)
}

// idKey distinguishes ids, numbers and names.
func idKey(s Sought) string { return "#" + s.ID + "\n" + s.Number + "\n" + string(s.List) }

// isWord reports whether no part of a word touches a span.
func (x *reading) isWord(s Span) bool {
	left, _ := utf8.DecodeLastRuneInString(x.text[:s.From])
	right, _ := utf8.DecodeRuneInString(x.text[s.To:])
	return !wordly(left) && !wordly(right)
}

// wordly reports whether r is part of a word.
func wordly(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_'
}

// raw returns a span as typed, with the invisible characters around it.
func (x *reading) raw(s Span) string {
	s = x.typed(s)
	for s.From > 0 {
		r, size := utf8.DecodeLastRuneInString(x.p.Text[:s.From])
		if !lookalike.Invisible(r) {
			break
		}
		s.From -= size
	}
	return x.p.Text[s.From:s.To]
}

// typed returns the position of a span in the text as typed.
func (x *reading) typed(s Span) Span { return Span{x.at[s.From], x.end(s.To)} }

// end returns the end of a span in the text as typed, including everything typed for its last
// character.
func (x *reading) end(to int) int {
	for 0 < to && to < len(x.text) && x.at[to] == x.at[to-1] {
		to++
	}
	return x.at[to]
}

// finish makes the stretches, and converts all spans to the text as typed.
func (x *reading) finish(cut int) {
	slices.SortFunc(x.claims, func(a, b Stretch) int { return a.From - b.From })
	at := 0
	add := func(to int, what What, kind Kind) {
		from := 0
		if n := len(x.p.Stretches); n > 0 {
			from = x.p.Stretches[n-1].To
		}
		if end := x.end(to); end > from {
			x.p.Stretches = append(x.p.Stretches, Stretch{Span{from, end}, what, kind})
		} else if n := len(x.p.Stretches); n > 0 && kind > x.p.Stretches[n-1].Kind { // of the same escape
			x.p.Stretches[n-1].What, x.p.Stretches[n-1].Kind = what, kind
		}
		at = to
	}
	rest := func(to int) { // words, and the text between them
		for at < to {
			r, _ := utf8.DecodeRuneInString(x.text[at:])
			is := wordly(r)
			size := strings.IndexFunc(x.text[at:to], func(r rune) bool { return wordly(r) != is })
			if size < 0 {
				size = to - at
			}
			add(at+size, map[bool]What{true: Words, false: Filler}[is], Plain)
		}
	}
	for _, c := range x.claims {
		rest(c.From)
		add(c.To, c.What, c.Kind)
	}
	rest(len(x.text))
	if cut < len(x.p.Text) {
		x.p.Stretches = append(x.p.Stretches, Stretch{Span{cut, len(x.p.Text)}, Beyond, Plain})
	}
	for i := range x.p.Sought {
		for j, s := range x.p.Sought[i].Spans {
			x.p.Sought[i].Spans[j] = x.typed(s)
		}
	}
}
