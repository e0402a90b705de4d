package paste

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Kind is a kind of text that no list has, since lists have accounts and servers of the chat
// platform. If a text has several, the greatest counts.
type Kind uint8

// The kinds of a text.
const (
	Plain      Kind = iota
	Remnant         // a short word outside the language; next to words it means nothing
	Figure          // a number too short for an id; next to words it means nothing
	Number          // a number too long for an id, or several that may form one
	Profile         // a profile on another platform
	Web             // a web address or a domain
	Mail            // an e-mail address
	Telephone       // a telephone number
	Card            // the number of a payment card
	Account         // the number of a bank account
	Place           // a role, a channel, a command or a time, or the address of a conversation
	Invitation      // an invitation link: it does not identify its server
)

// numberKind returns the kind of a run of digits.
func numberKind(run string, international bool) Kind {
	switch {
	case len(run) == 26:
		return Account
	case len(run) >= 13 && len(run) <= 16 && run[0] >= '3' && run[0] <= '6' && luhn(run):
		return Card
	case isNational(run), international && len(run) >= 8 && len(run) <= MinDigits:
		return Telephone
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
	s = strings.ToLower(s)
	at := strings.LastIndexByte(s, '.')
	if at <= 0 {
		return false
	}
	switch s[at+1:] {
	case "example", "test", "invalid", "onion":
		return true
	}
	_, icann := publicsuffix.PublicSuffix(s)
	return icann
}
