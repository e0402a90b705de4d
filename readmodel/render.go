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

// Renderer turns decoded events into records. It renders Markdown, and makes the folded texts, the collation key,
// the look-alike keys and the JSON. This is the costly part of an event, done once per change. A Renderer holds
// buffers and a collator, so one goroutine at a time may use it. Its results depend only on its arguments.
type Renderer struct {
	reasons *reason.Renderer
	polish  *collate.Collator // ignores case
	key     collate.Buffer    // reused by each renderEntry
}

// NewRenderer makes a Renderer. It takes a millisecond, so reuse it.
func NewRenderer() *Renderer {
	return &Renderer{reasons: reason.NewRenderer(), polish: collate.New(language.Polish, collate.IgnoreCase)}
}

// Render makes the record of the event data d at stream sequence seq. d must be valid, as events.Decode returns it.
func (r *Renderer) Render(seq uint64, d events.Data) Record {
	canonical := events.AppendData(nil, d)
	rec := Record{Subject: d.Subject(), Sequence: seq, Revision: events.Revision(d), hash: events.HashJSON(canonical)}

	switch d := d.(type) {
	case events.Entry:
		rec.row = r.renderEntry(&d)
		rec.row.hash = rec.hash
		content := canonical[:bytes.LastIndexByte(canonical, ',')] // without the last member, the revision
		rec.row.digest = hashNamed(rec.Subject.String(), string(content))
	case events.Delisting:
		rec.Removed = true
		id := strings.Clone(d.EntryID) // the id may be a part of a message, which would stay in memory
		rec.row = &Row{id: id, list: uint8(listIndex(d.List)), revision: d.Revision, hash: rec.hash, removed: true}
	case events.Views:
		rec.views = d.Views
		rec.digest = viewsDigest(rec.Subject, d.Views)
	case events.Donation:
		rec.donation = &d
	default: // a donation was removed
		rec.Removed = true
	}
	return rec
}

func (r *Renderer) renderEntry(e *events.Entry) *Row {
	html := r.reasons.HTML(e.Reason)
	name := fold(e.Name)
	chat := fold(e.ChatID)

	r.key.Reset()
	collation := r.polish.KeyFromString(&r.key, norm.NFC.String(e.Name)) // NFC, so that canonically equal names have one key
	keys := lookalike.KeysOf(strings.Clone(e.Name))                      // a copy, so that no key retains the message

	row := &Row{
		json: string(marshalPublic(e, html)), collation: string(collation), text: name + "\n" + chat + "\n" + fold(reason.Text(html)),
		keys: keys, reported: e.ReportedAt.UnixNano(), chatKey: chatKey(e.ChatID),
		revision: e.Revision, list: uint8(listIndex(e.List)), filter: filterOf(e),
	}

	// The short texts are parts of the long ones.
	row.id = row.json[len(jsonStart):][:len(e.EntryID)]
	row.folded = row.text[:len(name)]
	row.names = row.text[:len(name)+1+len(chat)]

	// Save memory: a chat id or a key that equals another text of the row shares the bytes of that text.
	row.chat = row.foldedChat()
	if row.chat != e.ChatID {
		row.chat = strings.Clone(e.ChatID)
	}

	if row.keys.Shape == name {
		row.keys.Shape = row.folded
	}
	if row.keys.Folded == row.keys.Shape {
		row.keys.Folded = row.keys.Shape // frees the equal copy
	}
	return row
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
