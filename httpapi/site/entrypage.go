package site

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"time"

	"example.org/registry/events"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
)

// EntryPage is the page of one entry. All of it belongs to one view.
type EntryPage struct {
	Row  *readmodel.Row
	AsOf time.Time // as in Page
}

// entryView is the data of entry.html.
type entryView struct {
	*entry
	Form    string // action of the next search
	Asked   string // its initial text: empty
	Words   listWords
	Title   string // as in the verdict of its id
	Advice  *advice
	Warning *warning // nil if it is no warning
	Report  bool     // whether to offer a report: never, since the entry is one
	Reason  template.HTML
	Address string // of the page, for people with a printout
}

// Entry appends the page of one entry.
func (s *Site) Entry(dst []byte, p EntryPage) ([]byte, error) {
	e, err := s.entry(p.Row)
	if err != nil {
		return dst, err
	}
	v := entryView{entry: e, Form: "/", Words: wordsOf(e.List), Address: s.absolute(e.Path())}
	v.Title, v.Advice, v.Reason = e.onList(e.Server()), s.adviceFor(e.Class, e.Server()), shown(e.DescHTML)
	v.Warning = warningOf(valueOf(e.Class), true, []*readmodel.Row{p.Row})
	share := Share{Title: v.Title, About: "Otwórz i porównaj całe ID: link niczego nie dowodzi."}
	if !e.Accused() { // a chat is no place to vouch for anybody
		share.Title = "Sprawdź to ID w rejestrze"
	}
	return s.Append(dst, "entry", Page{
		Title: e.Name + " – " + e.standing, AsOf: p.AsOf, Finds: true, Named: true, Canonical: e.Path(), Data: v,
		About: share.About, Share: &share, Answers: true,
	})
}

// valueOf returns the verdict of an entry of that class, if nothing else is known.
func valueOf(class string) verdict.Value {
	switch class {
	case "scam":
		return verdict.Accused
	case "risk":
		return verdict.Risk
	}
	return verdict.Trusted
}

// EntryPath returns the address of an entry's page.
func EntryPath(l events.List, entryID string) string {
	return "/wpis/" + string(l) + "/" + url.PathEscape(entryID)
}

// Path returns the address of the entry's page.
func (e *entry) Path() string { return EntryPath(e.List, e.ID) }

// When returns the label of the entry's date.
func (e *entry) When() string {
	if e.Accused() {
		return "Zgłoszono"
	}
	return "Na liście od"
}

// Number returns the label of the report's number.
func (e *entry) Number() string {
	if e.Accused() {
		return "Nr zgłoszenia"
	}
	return "Nr wpisu"
}

// evidence describes the proofs. Link is empty if they are not shown.
type evidence struct{ Text, Link string }

// Evidence returns nil if there are no proofs.
func (e *entry) Evidence() *evidence {
	switch {
	case e.PrivateProofs:
		return &evidence{Text: "niepubliczne"}
	case e.ProofsID == nil:
		return nil
	case e.proofsShown:
		return &evidence{"Zobacz dowody", "/proofs/" + *e.ProofsID}
	}
	return &evidence{Text: "ma moderacja"}
}

// fill renders as many of n entries as fit into room bytes, and returns their number.
func fill(n, room int, render func(into *bytes.Buffer, i int) error) (body template.HTML, shown int, err error) {
	var out bytes.Buffer
	for ; shown < n; shown++ {
		before := out.Len()
		if err := render(&out, shown); err != nil {
			return "", 0, err
		}
		if out.Len() > room {
			out.Truncate(before)
			break
		}
	}
	return template.HTML(out.String()), shown, nil
}

// item renders an entry among others: the beginning of its reason as text, and a link to its page.
func (s *Site) item(into *bytes.Buffer, r *readmodel.Row) error {
	e, err := s.entry(r)
	if err != nil {
		return err
	}
	i := item{e, excerpt(e.DescHTML)}
	if err := s.items.Execute(into, &i); err != nil {
		return fmt.Errorf("site: entry %s: %w", e.ID, err)
	}
	return nil
}

// item is the data of _item.html.
type item struct {
	*entry
	Excerpt string
}
