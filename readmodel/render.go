package readmodel

import (
	"bytes"
	"strings"
	"unicode"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"example.org/registry/events"
	"example.org/registry/readmodel/casefold"
	"example.org/registry/readmodel/lookalike"
	"example.org/registry/readmodel/reason"
)

// Renderer turns decoded events into records: Markdown, folded texts, collation key, look-alike
// keys and JSON. This is the costly part of an event, done once per change. A Renderer holds
// buffers and a collator, so one goroutine at a time may use it. Its results depend only on its
// arguments (promise 1).
type Renderer struct {
	reasons *reason.Renderer
	polish  *polish
	scratch []byte // of newRow
}

// NewRenderer makes a Renderer. It takes a millisecond, so reuse it.
func NewRenderer() *Renderer {
	return &Renderer{reasons: reason.NewRenderer(), polish: newPolish()}
}

// Render makes the record of the event data d at stream sequence seq. d must be valid, as
// events.Decode returns it.
func (r *Renderer) Render(seq uint64, d events.Data) Record {
	canonical := events.AppendData(nil, d)
	rec := Record{Subject: d.Subject(), Sequence: seq, Revision: events.Revision(d), hash: events.HashJSON(canonical)}
	switch d := d.(type) {
	case events.Entry:
		from := r.render(&d)
		from.digest = contentDigest(rec.Subject, canonical)
		rec.row, r.scratch = newRow(r.scratch[:0], &d, &rec, from)
	case events.Views:
		rec.views = d.Views
		rec.digest = viewsDigest(rec.Subject, d.Views)
	case events.Donation:
		rec.donation = &d
	default:
		rec.Removed = true
	}
	return rec
}

func (r *Renderer) render(e *events.Entry) *rendering {
	html := r.reasons.HTML(e.Reason)
	return &rendering{
		descHTML:  html,
		collation: r.polish.key(e.Name),
		name:      fold(e.Name),
		chat:      fold(e.ChatID),
		reason:    fold(reason.Text(html)),
		keys:      lookalike.KeysOf(e.Name),
	}
}

// fold returns the form in which texts are compared (httpapi/CONTRACT.md#search): NFKC, full
// Unicode case folding, and a single space for each run of white space. Any goroutine may call it.
func fold(s string) string {
	return oneSpace(casefold.String(norm.NFKC.String(s)))
}

// oneSpace replaces every run of white space by one space.
func oneSpace(s string) string {
	if isSpaced(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	space := false
	for _, r := range s {
		if !unicode.IsSpace(r) {
			b.WriteRune(r)
		} else if !space {
			b.WriteByte(' ')
		}
		space = unicode.IsSpace(r)
	}
	return b.String()
}

// isSpaced reports whether the only white space in s is single spaces.
func isSpaced(s string) bool {
	space := false
	for _, r := range s {
		if r != ' ' && unicode.IsSpace(r) || r == ' ' && space {
			return false
		}
		space = r == ' '
	}
	return true
}

// polish makes sort keys of the Polish alphabet (httpapi/CONTRACT.md#sorting). The collator's
// tables are from Unicode 6.2 and sort newer characters after every alphabet. That is right for
// letters of new scripts, but names are full of emoji: 🤣 (Unicode 9) would come after ż, and 😀
// before a. So new symbols sort with the old ones, before the digits. One goroutine at a time may
// use a polish.
type polish struct {
	collator *collate.Collator
	buffer   collate.Buffer
	unknown  []byte // the key of the first code point unknown to the collator
}

func newPolish() *polish {
	// Plain Polish would distinguish upper from lower case.
	p := &polish{collator: collate.New(language.Polish, collate.IgnoreCase)}
	p.unknown = bytes.Clone(p.collator.KeyFromString(&p.buffer, "\u0378")) // unassigned
	return p
}

// key returns the sort key of name, which is valid until the next call. Canonically equal names
// have equal keys.
func (p *polish) key(name string) []byte {
	name = norm.NFC.String(name)
	if strings.ContainsFunc(name, p.isNewSymbol) {
		name = p.replaceNewSymbols(name)
	}
	return p.raw(name)
}

func (p *polish) raw(name string) []byte {
	p.buffer.Reset()
	return p.collator.KeyFromString(&p.buffer, name)
}

// isNewSymbol reports whether r is a symbol unknown to the collator. A symbol sorted among letters,
// as ™ among tm, is known.
func (p *polish) isNewSymbol(r rune) bool {
	return r > unicode.MaxLatin1 && unicode.IsSymbol(r) && bytes.Compare(p.raw(string(r)), p.unknown) > 0
}

// replaceNewSymbols writes each new symbol as the last known one of its kind, followed by its code
// point, so new symbols follow the known ones in the order of their code points. The code point is
// written as three Braille patterns, a byte each: these are symbols too, and sort by their value.
// New symbols that stand for letters (🅬, ㋿) are written as those letters.
func (p *polish) replaceNewSymbols(name string) string {
	const lastSmiley, lastCurrency, braille = '\U0001F640', '\u20BA', 0x2800
	var b strings.Builder
	for _, r := range name {
		switch {
		case !p.isNewSymbol(r):
			b.WriteRune(r)
			continue
		case !norm.NFKC.IsNormalString(string(r)):
			b.WriteString(norm.NFKC.String(string(r)))
			continue
		case unicode.Is(unicode.Sc, r):
			b.WriteRune(lastCurrency)
		default:
			b.WriteRune(lastSmiley)
		}
		for shift := 16; shift >= 0; shift -= 8 {
			b.WriteRune(braille + r>>shift&0xFF)
		}
	}
	return b.String()
}
