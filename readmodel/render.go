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
		html := r.reasons.HTML(d.Reason)
		rec.row, r.scratch = newRow(r.scratch[:0], &d, &rec, &rendering{
			descHTML:  html,
			collation: r.polish.sortKey(d.Name),
			name:      fold(d.Name),
			chat:      fold(d.ChatID),
			reason:    fold(reason.Text(html)),
			keys:      lookalike.KeysOf(d.Name),
			digest:    contentDigest(rec.Subject, canonical),
		})
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

// fold returns the form in which texts are compared (httpapi/CONTRACT.md#search): NFKC, full
// Unicode case folding, and a single space for each run of white space. Any goroutine may call it.
func fold(s string) string {
	return joinSpaces(casefold.String(norm.NFKC.String(s)))
}

// joinSpaces replaces every run of white space by one space.
func joinSpaces(s string) string {
	isSpace := false
	return strings.Map(func(r rune) rune {
		wasSpace := isSpace
		isSpace = unicode.IsSpace(r)
		if !isSpace {
			return r
		}
		if wasSpace {
			return -1
		}
		return ' '
	}, s)
}

// polish makes sort keys of the Polish alphabet (httpapi/CONTRACT.md#sorting). One goroutine at a time
// may use it.
//
// The collator's tables are from Unicode 6.2 and sort newer characters after every alphabet. That is
// right for letters of new scripts, but names are full of emoji: 🤣 (Unicode 9) would come after ż, and
// 😀 before a. So new symbols sort as the last of the old ones, before the digits.
type polish struct {
	collator *collate.Collator
	buffer   collate.Buffer
	unknown  []byte // the key of the first code point unknown to the collator
}

func newPolish() *polish {
	// Plain Polish would distinguish upper from lower case.
	p := &polish{collator: collate.New(language.Polish, collate.IgnoreCase)}
	p.unknown = bytes.Clone(p.rawKey("\u0378")) // unassigned
	return p
}

// sortKey returns the sort key of name, which is valid until the next call. Canonically equal names
// have equal keys.
func (p *polish) sortKey(name string) []byte {
	const lastSymbol = '\U0001F640'
	return p.rawKey(strings.Map(func(r rune) rune {
		if p.isNewSymbol(r) {
			return lastSymbol
		}
		return r
	}, norm.NFC.String(name)))
}

func (p *polish) rawKey(name string) []byte {
	p.buffer.Reset()
	return p.collator.KeyFromString(&p.buffer, name)
}

// isNewSymbol reports whether r is a symbol unknown to the collator. A symbol sorted among letters,
// as ™ among tm, is known.
func (p *polish) isNewSymbol(r rune) bool {
	return r > unicode.MaxLatin1 && unicode.IsSymbol(r) && bytes.Compare(p.rawKey(string(r)), p.unknown) > 0
}
