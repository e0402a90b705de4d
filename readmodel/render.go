package readmodel

import (
	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
)

// Renderer turns decoded events into records: Markdown, folding, collation, look-alike keys and JSON, the costly
// part of an event, done once per change. It holds buffers and a collator, which are not safe for
// concurrent use: one Renderer per goroutine. Its results depend on its arguments alone (promise 1).
type Renderer struct {
	markdown *markdown
	polish   *polish
}

// NewRenderer makes a Renderer. It takes a millisecond: keep it.
func NewRenderer() *Renderer {
	return &Renderer{markdown: newMarkdown(), polish: newPolish()}
}

// Render makes the record of what d says, as of stream sequence seq. d is valid as events.Decode
// leaves it.
func (r *Renderer) Render(seq uint64, d events.Data) Record {
	rec := Record{Key: KeyOf(d), Sequence: seq}
	switch d := d.(type) {
	case events.Entry:
		rec.state = events.CanonicalData(d)
		rec.digest = hashState(d.Subject(), rec.state)
		rec.row = newRow(&d, seq, rec.digest, r.render(&d))
	case events.Views:
		rec.views = d.Views
		rec.digest = viewsDigest(rec.Key, d.Views)
	case events.Donation:
		rec.state = events.CanonicalData(d)
		rec.digest = hashState(d.Subject(), rec.state)
		rec.donation = &d
	default:
		rec.Removed = true
	}
	return rec
}

func (r *Renderer) render(e *events.Entry) *rendering {
	page := r.markdown.render(e.Reason)
	return &rendering{
		descHTML:  page,
		collation: r.polish.key(e.Name),
		name:      Fold(e.Name),
		chat:      Fold(e.ChatID),
		reason:    Fold(visibleText(page)),
		keys:      lookalike.KeysOf(e.Name),
	}
}
