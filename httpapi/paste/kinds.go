package paste

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"example.org/registry/readmodel/lookalike"
)

// Kind is a kind of text that no list has, since lists have accounts and servers of the chat
// platform. If a text has several, the greatest counts.
type Kind uint8

// The kinds of a text.
const (
	Plain      Kind = iota
	Short           // a number too short for an id
	Number          // a number too long for an id
	Time            // a time or a date
	Profile         // a profile on another platform
	Web             // a web address or a domain
	Mail            // an e-mail address
	Telephone       // a telephone number
	Card            // the number of a payment card
	Account         // the number of a bank account
	Place           // a role, a channel or a command, or the address of a conversation
	Message         // the address of a message: it does not say who wrote it
	Invitation      // an invitation link: it does not identify its server
)

// Token is a piece of the text of a kind that no list has.
type Token struct {
	Span
	Kind Kind
}

// kinds returns the pieces of a text that no list has, in their order.
func (rd *Reader) kinds(s string) (all []Token) {
	for _, id := range rd.ids(s) { // which are no number of another kind, nor a part of one
		if numberKind(id.digits, false) == Card {
			continue
		}
		s = s[:id.From] + strings.Repeat("\x00", id.To-id.From) + s[id.To:]
	}
	add := func(from, to int, kind Kind) {
		if kind != Plain && !slices.ContainsFunc(all, func(o Token) bool { return o.From < to && from < o.To }) {
			all = append(all, Token{Span{from, to}, kind})
		}
	}
	for _, m := range rd.place.FindAllStringIndex(s, -1) {
		add(m[0], m[1], Place)
	}
	for _, m := range rd.channels.FindAllStringSubmatchIndex(s, -1) {
		kind := Place
		if strings.Count(s[m[4]:m[1]], "/") == 2 && Digits(s[m[4]:m[5]]) {
			kind = Message
		}
		add(m[2], m[1], kind)
	}
	for token := range tokens(s) {
		word := s[token.From:token.To]
		bare := strings.TrimRight(strings.TrimLeft(word, "/*`'’"), ".:!?#/*`'’-_~+=&\\…")
		from := token.From + strings.Index(word, bare)
		if bare != "" {
			add(from, from+len(bare), rd.addressKind(bare))
		}
	}
	for _, m := range rd.account.FindAllStringIndex(s, -1) {
		if iban(s[m[0]:m[1]]) {
			add(m[0], m[1], Account)
		}
	}
	for _, m := range rd.figures.FindAllStringIndex(s, -1) {
		if touches(s, m[0], m[1]) {
			continue // a part of a name
		}
		number := strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, s[m[0]:m[1]])
		add(m[0], m[1], numberKind(number, s[m[0]] == '+' || strings.HasPrefix(number, "00")))
	}
	slices.SortFunc(all, func(a, b Token) int { return a.From - b.From })
	return all
}

// placesIn returns the pieces of a text whose numbers are nobody's.
func (rd *Reader) placesIn(s string) (all []Span) {
	for _, m := range rd.place.FindAllStringIndex(s, -1) {
		all = append(all, Span{m[0], m[1]})
	}
	for _, m := range rd.channels.FindAllStringSubmatchIndex(s, -1) {
		all = append(all, Span{m[2], m[1]})
	}
	return all
}

// addressKind returns the kind of a word that may be an address.
func (rd *Reader) addressKind(word string) Kind {
	scheme, rest, hasScheme := strings.Cut(word, "://")
	if !hasScheme {
		scheme, rest = "", word
	}
	host, path, _ := strings.Cut(rest, "/")
	name, _, _ := strings.Cut(host, ":")
	at := strings.LastIndexByte(word, '@')
	switch lower := strings.ToLower(name); {
	case word == "@everyone" || word == "@here":
		return Place
	case len(word) > 1 && word[0] == '#' && !strings.ContainsFunc(word[1:], func(r rune) bool { return !lookalike.IsWordly(r) && r != '-' && r != '_' }) && strings.ContainsFunc(word, unicode.IsLetter):
		return Place
	case rd.clock.MatchString(word):
		return Time
	case scheme == "" && at > 0 && isDomain(word[at+1:]):
		return Mail
	case rd.inviting.MatchString(host) && path != "",
		(strings.HasSuffix("."+lower, ".discord.com") || strings.HasSuffix("."+lower, ".discordapp.com")) && strings.HasPrefix(path, "invite/"):
		return Invitation
	case rd.steam.MatchString(word), rd.elsewhere.MatchString(name):
		return Profile
	case isAddress(word):
		return Web
	}
	return Plain
}

// isAddress reports whether a word has a web address or a domain in it.
func isAddress(word string) bool {
	if strings.Contains(word, "://") || strings.HasPrefix(strings.ToLower(word), "www.") {
		return true
	}
	if !strings.ContainsAny(word, ".。") {
		return false
	}
	for host := range strings.FieldsFuncSeq(word, func(r rune) bool { return !lookalike.IsWordly(r) && r != '.' && r != '-' && r != '。' }) {
		host = strings.Trim(host, ".-")
		if a, err := netip.ParseAddr(host); err == nil && a.Is4() || isDomain(host) {
			return true
		}
	}
	return false
}

// numberKind returns the kind of a run of digits.
func numberKind(run string, international bool) Kind {
	switch {
	case len(run) == 26:
		return Account
	case len(run) >= 13 && len(run) <= 16 && run[0] >= '3' && run[0] <= '6' && luhn(run):
		return Card
	case isNational(run), international && len(run) >= 8 && len(run) <= MinDigits:
		return Telephone
	case len(run) > MaxDigits:
		return Number
	case len(run) >= 5 && len(run) < MinDigits:
		return Short
	}
	return Plain
}

// isNational reports whether a number is a Polish telephone number, with the country code or
// without.
func isNational(number string) bool {
	return len(number) == 9 || len(strings.TrimPrefix(strings.TrimPrefix(number, "00"), "48")) == 9
}

// iban reports whether the check digits of an IBAN are right (ISO 13616).
func iban(s string) bool {
	s = strings.ToUpper(strings.NewReplacer(" ", "", "-", "").Replace(s))
	if len(s) < 15 || len(s) > 34 {
		return false
	}
	rest := 0
	for _, r := range s[4:] + s[:4] {
		if r >= 'A' {
			rest = (rest*100 + int(r-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(r-'0')) % 97
		}
	}
	return rest == 1
}

// luhn reports whether the check digit of a card's number is right (ISO/IEC 7812-1).
func luhn(number string) bool {
	sum := 0
	for i, r := range number {
		d := int(r - '0')
		if (len(number)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isDomain reports whether s ends in a registered top-level domain, or in one reserved for examples
// (RFC 2606).
func isDomain(s string) bool {
	s, err := idna.Lookup.ToASCII(strings.ToLower(s))
	at := strings.LastIndexByte(s, '.')
	if err != nil || at <= 0 {
		return false
	}
	switch s[at+1:] {
	case "example", "test", "invalid", "onion":
		return true
	}
	_, icann := publicsuffix.PublicSuffix(s)
	return icann
}
