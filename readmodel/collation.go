package readmodel

import (
	"bytes"
	"strings"
	"unicode"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// polish makes the keys of the Polish alphabetical order (API contract, lists: sort). The collator's
// tables are those of Unicode 6.2. What is younger it sorts behind every alphabet, letters of young
// scripts rightly so; symbols, of which names are full, belong before the digits, and are put
// there. Not safe for concurrent use.
type polish struct {
	collator *collate.Collator
	buffer   collate.Buffer
	digits   []byte // the key of the first digit: symbols the collator knows come before it
}

func newPolish() *polish {
	// Plain Polish would part upper from lower case.
	p := &polish{collator: collate.New(language.Polish, collate.IgnoreCase)}
	p.digits = bytes.Clone(p.collator.KeyFromString(&p.buffer, "0"))
	return p
}

// key is valid until the next call. Canonically equal names have equal keys.
func (p *polish) key(name string) []byte {
	name = norm.NFC.String(name)
	if strings.ContainsFunc(name, p.young) {
		name = p.aged(name)
	}
	return p.raw(name)
}

func (p *polish) raw(name string) []byte {
	p.buffer.Reset()
	return p.collator.KeyFromString(&p.buffer, name)
}

// young says whether r is a symbol that the collator does not know.
func (p *polish) young(r rune) bool {
	return r > unicode.MaxLatin1 && unicode.IsSymbol(r) && bytes.Compare(p.raw(string(r)), p.digits) > 0
}

// aged replaces each young symbol by the last known one of its kind and its number, written in
// Braille patterns, which are symbols too: behind its elders, among its peers by code point.
func (p *polish) aged(name string) string {
	var b strings.Builder
	for _, r := range name {
		if !p.young(r) {
			b.WriteRune(r)
			continue
		}
		elder := '\U0001F640' // the last of the smileys
		if unicode.Is(unicode.Sc, r) {
			elder = '\u20BA' // the last of the currency signs
		}
		b.WriteRune(elder)
		for shift := 16; shift >= 0; shift -= 8 {
			b.WriteRune(0x2800 + r>>shift&0xFF)
		}
	}
	return b.String()
}
