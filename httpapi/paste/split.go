package paste

import (
	"net/netip"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reader reads pastes. It never changes, and any goroutine may use it.
type Reader struct {
	emoji, mention, place, command, elsewhere, steam *regexp.Regexp
	platform, inviting, meant                        *regexp.Regexp
	mail, digits, telephone, account                 *regexp.Regexp
	field, label, glued, trailing, tag, number       *regexp.Regexp
}

// labels are the words that people write before a name or an id, labelled what may follow them.
const (
	labels = `(?:discord|user)?\s*id|nick(?:u|iem|name)?|nazwa|login|tag|dc|discord|user|username|użytkowni(?:k|ka|czka)|` +
		`konto|serwer|server|profil|gracz|osoba|ksywk?a|pseudonim`
	labelled = `(?:\s+(?:użytkownika|konta|serwera|oszusta|na\s+(?:dc|discordzie)))?`
)

// NewReader returns a reader for texts of people who use a Discord-compatible platform.
func NewReader() *Reader {
	return &Reader{
		emoji:    regexp.MustCompile(`<a?:\w+:\d+>`),
		mention:  regexp.MustCompile(`<@!?(\d+)>`),
		place:    regexp.MustCompile(`<(?:@&|#)\d+>`),
		command:  regexp.MustCompile(`^(?:#[\p{L}\p{N}_-]+|@everyone|@here|</[^>]*>)$`),
		platform: regexp.MustCompile(`(?i)^(?:-|(?:[a-z]+\.)?discord(?:app)?\.com)$`),
		inviting: regexp.MustCompile(`(?i)^(?:(?:discord|dsc|invite)\.gg|discord\.me|\.gg)$`),
		meant:    regexp.MustCompile(`^/(?:users|channels)/(\d+)(?:$|[/?#.])`),
		elsewhere: regexp.MustCompile(`(?i)^(?:.*\.)?(?:steamcommunity|facebook|fb|instagram|tiktok|twitter|x|youtube|twitch|roblox|` +
			`snapchat|telegram|t|vinted|allegro|allegrolokalnie|olx|ebay|paypal|reddit|github|messenger|m)\.(?:com|pl|me|tv|net)$`),
		steam:     regexp.MustCompile(`(?i)^STEAM_\d:\d:\d+$`),
		mail:      regexp.MustCompile(`^[\p{L}\p{N}._%+-]+@([\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+)$`),
		digits:    regexp.MustCompile(`\d+`),
		telephone: regexp.MustCompile(`(?i)^(?:(?:numer|nr|tel|telefon|telefonu|kom|komórka|whatsapp|blik|kontakt)[.:=\s]*)*[\d\s()+./-]+[\s!?]*$`),
		account:   regexp.MustCompile(`(?i)\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?\b`),
		field:     regexp.MustCompile(`(?i)(?:^|[\s,;(|/])(?:` + labels + `)` + labelled + `\s*[:=]+`),
		label:     regexp.MustCompile(`(?i)^(?:` + labels + `)` + labelled + `(?:\s*[:=]+\s*|\s+to:?\s+|\s+[-–—]\s+|\s+|-+|$)`),
		glued:     regexp.MustCompile(`(?i)(?:^|[^\p{L}\p{N}_])id$`),
		trailing:  regexp.MustCompile(`(?i)\s+id\s*[-:=]*$`),
		tag:       regexp.MustCompile(`\s*#\s*(?:\d{4}|0)$`),
		number:    regexp.MustCompile(`^\d{1,2}[.)]\s+`),
	}
}

// content is what a text consists of.
type content struct {
	ids   []string // each nothing else than an id
	maybe []string // digits that may be an id among others, or in an address that is not the platform's
	left  string   // what is left of the text without ids, mentions and addresses
	parts []string // what is left, part by part
	kind  Kind
}

// gap stands in a text where something was taken out.
const gap = "\n"

// split takes ids and addresses out of a text, and cuts what is left into its parts.
func (rd *Reader) split(text string) (c content) {
	text = refanged(text)
	if without := rd.place.ReplaceAllString(text, gap); without != text {
		text, c.kind = without, Place
	}
	text = rd.mention.ReplaceAllStringFunc(text, func(found string) string {
		c.ids = append(c.ids, rd.mention.FindStringSubmatch(found)[1])
		return gap
	})
	text = rd.takeAddresses(&c, text)
	text = rd.takeDigits(&c, rd.field.ReplaceAllString(text, gap))
	c.left = spaced(text)
	for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",;|\r\n", r) }) {
		c.addPart(rd, piece)
		if strings.Contains(piece, "/") {
			for _, part := range strings.Split(piece, "/") {
				c.addPart(rd, part)
			}
		}
	}
	return c
}

// addPart adds a part, unless it is nothing but punctuation, or a label of an id: "ID 9900…" names
// nobody.
func (c *content) addPart(rd *Reader, part string) {
	part = strings.TrimSpace(part)
	blank := strings.Trim(part, around) == "" || !strings.ContainsFunc(part, func(r rune) bool { return !unicode.IsPunct(r) })
	if !blank && (len(c.ids) == 0 || rd.label.FindString(part) != part) {
		c.parts = append(c.parts, part)
	}
}

// refanged undoes what people write so that an address is no link.
func refanged(text string) string {
	return strings.NewReplacer("[.]", ".", "(.)", ".", "[dot]", ".", "[DOT]", ".", "(dot)", ".", "。", ".",
		"hxxp://", "http://", "hxxps://", "https://").Replace(text)
}

// takeAddresses takes mail and web addresses out of a text. An address ends where something else
// may begin: at white space, brackets, quotes and what parts names.
func (rd *Reader) takeAddresses(c *content, text string) string {
	ends := func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;|()[]{}<>\"„”“«»", r) }
	var rest strings.Builder
	for text != "" {
		at := strings.IndexFunc(text, func(r rune) bool { return !ends(r) })
		if at < 0 {
			at = len(text)
		}
		rest.WriteString(text[:at])
		text = text[at:]
		if at = strings.IndexFunc(text, ends); at < 0 {
			at = len(text)
		}
		rest.WriteString(rd.takeAddress(c, text[:at]))
		text = text[at:]
	}
	return rest.String()
}

// takeAddress returns what is left of a word: nothing of an address, but all of a bare domain,
// which somebody may have for a name.
func (rd *Reader) takeAddress(c *content, word string) string {
	bare := strings.TrimRight(strings.TrimLeft(word, "/*`'’"), ".:!?*`'’")
	if m := rd.mail.FindStringSubmatch(bare); m != nil && isDomain(m[1]) {
		c.kind = max(c.kind, Mail)
		rd.takeRuns(c, word)
		return gap
	}
	scheme, host, path := cutAddress(bare)
	if !scheme && host == "-" { // the host of discord://-/users/…
		return word
	}
	switch {
	case rd.steam.MatchString(bare):
		c.kind = max(c.kind, Profile)
		return word
	case rd.inviting.MatchString(host) && path != "", rd.platform.MatchString(host) && strings.HasPrefix(path, "/invite/"):
		c.kind = max(c.kind, Invitation)
	case rd.platform.MatchString(host) && strings.HasPrefix(path, "/channels/@me"):
		c.kind = max(c.kind, Place)
		return gap
	case rd.platform.MatchString(host):
		if m := rd.meant.FindStringSubmatch(path); m != nil {
			c.ids = append(c.ids, m[1])
			path = path[len(m[0]):]
			if strings.HasPrefix(m[0], "/channels/") {
				return gap // what follows are channels and messages
			}
			rd.takeRuns(c, path)
			return gap
		}
		c.kind = max(c.kind, Web)
	case rd.elsewhere.MatchString(host):
		c.kind = max(c.kind, Profile)
	case rd.meant.MatchString(path) && (scheme || isDomain(host)): // a chat platform of another name, or what looks like one
		c.maybe = append(c.maybe, rd.meant.FindStringSubmatch(path)[1])
	case scheme, strings.HasPrefix(strings.ToLower(host), "www."), path != "" && isDomain(host), isNumeric(host):
		c.kind = max(c.kind, Web)
	case isDomain(host):
		c.kind = max(c.kind, Web)
		return word
	default:
		return word
	}
	rd.takeRuns(c, bare)
	return gap
}

// takeRuns notes the runs of digits in an address that may be ids.
func (rd *Reader) takeRuns(c *content, address string) {
	for _, run := range rd.digits.FindAllString(address, -1) {
		if isRun(run) {
			c.maybe = append(c.maybe, run)
		}
	}
}

// cutAddress splits a word into its host and what follows it, and reports whether it has a scheme.
func cutAddress(word string) (scheme bool, host, path string) {
	if at := strings.Index(word, "://"); at > 0 {
		scheme, word = true, word[at+3:]
	}
	if at := strings.IndexAny(word, "/?#:"); at >= 0 {
		return scheme, word[:at], word[at:]
	}
	return scheme, word, ""
}

// isNumeric reports whether a host is an IPv4 address.
func isNumeric(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is4()
}

// How many digits an id has.
const (
	minDigits = 15
	maxDigits = 20
)

// isRun reports whether s, which is digits, has as many as an id.
func isRun(s string) bool { return len(s) >= minDigits && len(s) <= maxDigits }

// group is a run of digits in a text.
type group struct {
	from, to int
	free     bool // no letter touches it
}

// maxGroup is how many digits people write in a row in an id with separators. A longer run is a
// number of its own.
const maxGroup = 8

// takeDigits takes the ids out of a text: runs with the digits of an id, and whole chains that have
// as many together. A run that touches a letter, or is a part of a longer chain, only may be an id:
// it is noted, and stays.
func (rd *Reader) takeDigits(c *content, text string) string {
	var rest strings.Builder
	at := 0
	for _, chain := range rd.chains(text) {
		run, free := joined(text, chain), chain
		if !chain[0].free && len(chain) > 1 {
			free = chain[1:]
		}
		switch {
		case len(chain) == 1 && isRun(run) && !chain[0].free:
			c.maybe = append(c.maybe, run)
			continue
		case len(free) < len(chain) || len(run) > maxDigits:
			c.maybe = append(c.maybe, windows(text, chain)...)
		}
		run = joined(text, free)
		c.kind = max(c.kind, numberKind(run))
		for _, g := range free {
			if g.to-g.from > maxGroup {
				c.kind = max(c.kind, numberKind(text[g.from:g.to]))
			}
		}
		if isRun(run) && (len(free) == 1 || longest(free) <= maxGroup) && free[0].free {
			c.ids = append(c.ids, run)
			rest.WriteString(text[at:free[0].from] + gap)
			at = free[len(free)-1].to
		}
	}
	rest.WriteString(text[at:])
	return rest.String()
}

// chains returns the runs of digits of a text, in chains: neighbours with only a separator between
// them, none of which is an id by itself. A letter may touch only the first of a chain.
func (rd *Reader) chains(text string) (all [][]group) {
	var before *group
	for _, at := range rd.digits.FindAllStringIndex(text, -1) {
		g := group{from: at[0], to: at[1]}
		left, _ := utf8.DecodeLastRuneInString(text[:g.from])
		right, _ := utf8.DecodeRuneInString(text[g.to:])
		g.free = !lettered(right) && (!lettered(left) || rd.glued.MatchString(text[max(0, g.from-4):g.from]))
		whole := isRun(text[g.from:g.to])
		if before != nil && g.free && !whole && separates(text[before.to:g.from]) {
			all[len(all)-1] = append(all[len(all)-1], g)
		} else {
			all = append(all, []group{g})
		}
		before = &g
		if whole || lettered(right) {
			before = nil
		}
	}
	return all
}

func lettered(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

// separates reports whether people write s between the digits of one id.
func separates(s string) bool {
	return utf8.RuneCountInString(s) <= 3 && strings.Trim(s, " -._,'’‐‒–—―−\t") == ""
}

// joined returns the digits of a chain.
func joined(text string, chain []group) string {
	var b strings.Builder
	for _, g := range chain {
		b.WriteString(text[g.from:g.to])
	}
	return b.String()
}

func longest(chain []group) (n int) {
	for _, g := range chain {
		n = max(n, g.to-g.from)
	}
	return n
}

// windows returns the neighbouring runs of a chain that together have as many digits as an id.
func windows(text string, chain []group) (all []string) {
	for from := range chain {
		total := 0
		for to := from; to < len(chain) && total <= maxDigits; to++ {
			if total += chain[to].to - chain[to].from; total >= minDigits && total <= maxDigits {
				all = append(all, joined(text, chain[from:to+1]))
			}
		}
	}
	return all
}

// wordly reports whether r is part of a word.
func wordly(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_'
}
