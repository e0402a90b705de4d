// Package verdict decides what the person check says of a text that somebody pasted: one of seven values, with a
// reason and what was found. Frightened people act on it, so no order of loops and no line of a template may decide
// whether somebody is accused or vouched for. Start with Check.
//
// The first rule that holds decides:
//
//	1  accused, risk  the id or the page of an accused is in the text; or the whole text is their chat id or the
//	                  number of their report, and no trusted person's name
//	2  trusted        the whole text is one id of trusted persons and nobody else's name, alone or beside its
//	                  owner's name
//	3  accused, risk  the whole text is a name of accused, of no trusted person, and there is no id in it
//	4  trusted-name   the whole text is a name of trusted persons, and of nobody accused
//	5  caution        digits, words, or their looks are somebody's, in some reading
//	6  none           the whole text is one id of 17 to 20 digits, on no list and not one digit off a listed one
//	7  unchecked      everything else
//
// Rules 2, 3, 4 and 6 read nothing into a text: the whole text is an id or a name. Readings (text.go) can only warn, so
// a better one can be added at any time. A name is never cleared, since anybody can take another one.
package verdict

import (
	"context"
	"slices"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// Value is the verdict in a word, as the page has it in data-verdict.
type Value string

// The values of a verdict.
const (
	Accused     Value = "accused"
	Risk        Value = "risk"
	Trusted     Value = "trusted"
	TrustedName Value = "trusted-name"
	Caution     Value = "caution"
	None        Value = "none"
	Unchecked   Value = "unchecked"
)

// Values returns all values.
func Values() []Value {
	return []Value{Accused, Risk, Trusted, TrustedName, Caution, None, Unchecked}
}

// Reason says why, where a value has several reasons.
type Reason uint8

// The reasons of a verdict.
const (
	Nothing     Reason = iota // unchecked: nothing was found
	ByID                      // accused, risk, trusted, none: an id, a number or an address decides
	ByName                    // accused, risk, trusted-name: a name decides
	Shared                    // caution: accused and trusted persons have this name
	Beside                    // caution: a trusted person's id, beside anything else
	OtherID                   // caution: an id on no list, beside somebody's name
	Alike                     // caution: the text looks like somebody's name
	InText                    // caution: digits or words of the text are somebody's
	OneDigitOff               // unchecked: an id on no list, one digit off a listed one
)

// Verdict is the answer of the page.
type Verdict struct {
	Value    Value
	Reason   Reason
	Rows     []*readmodel.Row // the entries that decided rules 1 to 4
	Findings []Finding        // what was found, each entry once: ids first, then the longest words
	Alone    string           // the id in a caution, to be checked alone, or ""
}

// Finding is a part of the text, and the entries that it points to.
type Finding struct {
	Text string
	Kind Kind
	Rows []*readmodel.Row // none for an id that is on no list
}

// Kind says how a part of a text points to entries.
type Kind uint8

// The kinds of findings.
const (
	ID     Kind = iota // 15 to 20 digits
	Number             // the number or the page of an entry, or a chat id of another form
	Name
)

// IsID reports whether the finding is an id.
func (f *Finding) IsID() bool { return f.Kind == ID }

// Finder finds entries. A *readmodel.View is one.
type Finder interface {
	Who(ctx context.Context, q *readmodel.Question) (readmodel.Answer, error)
	Entry(l events.List, id string) *readmodel.Row
}

// Check decides. search and id are the fields of the page, which are one text. Its only error is ctx's.
func Check(ctx context.Context, in Finder, search, id string) (Verdict, error) {
	d := decision{text: read(search, id)}
	if err := d.find(ctx, in); err != nil {
		return Verdict{}, err
	}

	for _, holds := range []func() bool{d.accusedByID, d.trusted, d.accusedByName, d.trustedName, d.caution, d.none} {
		if holds() {
			d.list()
			return d.v, nil
		}
	}
	d.v.Value = Unchecked
	return d.v, nil
}

// decision is a verdict in the making: a text, and what was found of it.
type decision struct {
	text text

	ids     map[string][]*readmodel.Row // by chat id
	numbers map[string][]*readmodel.Row // by the number of a report or an entry
	pages   []*readmodel.Row            // of text.pages; nil if there is no such entry
	named   []*readmodel.Row            // whose literal name is the whole text
	blank   []*readmodel.Row            // whose literal name is an invisible word
	alike   [][]*readmodel.Row          // of text.runs
	near    bool                        // somebody has an id of text.near

	moreNamed, moreAlike bool // there are more than were read

	v Verdict
}

// find looks up, at once, all that the text may point to.
func (d *decision) find(ctx context.Context, in Finder) error {
	t := &d.text
	q := readmodel.Question{IDs: slices.Concat(t.ids, t.maybe, t.words, t.near), Numbers: t.words, Literals: slices.Concat(t.names, t.blanks)}
	for _, run := range t.runs {
		q.Cores = append(q.Cores, run.core)
	}
	a, err := in.Who(ctx, &q)
	if err != nil {
		return err
	}

	d.ids, d.numbers = map[string][]*readmodel.Row{}, map[string][]*readmodel.Row{}
	known := len(q.IDs) - len(t.near)
	for i, id := range q.IDs[:known] {
		d.ids[id] = a.IDs[i]
	}
	d.near = slices.ContainsFunc(a.IDs[known:], func(rows []*readmodel.Row) bool { return len(rows) > 0 })
	for i, number := range q.Numbers {
		d.numbers[number] = a.Numbers[i]
	}
	for _, page := range t.pages {
		d.pages = append(d.pages, in.Entry(page.list, page.id))
	}
	d.named, d.blank = slices.Concat(a.Literals[:len(t.names)]...), slices.Concat(a.Literals[len(t.names):]...)
	d.alike, d.moreNamed, d.moreAlike = a.Cores, a.MoreLiterals, a.MoreCores
	return nil
}

func accused(r *readmodel.Row) bool { return r.List() != events.Legit }
func trusted(r *readmodel.Row) bool { return r.List() == events.Legit }

// addAccused adds the accused of rows to those that decide.
func (d *decision) addAccused(rows ...*readmodel.Row) {
	for _, r := range rows {
		if r != nil && accused(r) && !slices.Contains(d.v.Rows, r) {
			d.v.Rows = append(d.v.Rows, r)
		}
	}
}

// accuse decides for accused or risk if accused were added.
func (d *decision) accuse(why Reason) bool {
	if len(d.v.Rows) == 0 {
		return false
	}
	d.v.Value, d.v.Reason = Risk, why
	if slices.ContainsFunc(d.v.Rows, (*readmodel.Row).Verified) {
		d.v.Value = Accused
	}
	return true
}

// accusedByID is rule 1.
func (d *decision) accusedByID() bool {
	for _, id := range d.text.ids {
		d.addAccused(d.ids[id]...)
	}
	d.addAccused(d.pages...)

	whole := d.text.whole
	if !slices.ContainsFunc(d.named, trusted) && !d.moreNamed {
		d.addAccused(d.ids[whole]...)
		for _, r := range d.numbers[whole] {
			if r.ReportID() == whole {
				d.addAccused(r)
			}
		}
	}
	return d.accuse(ByID)
}

// trusted is rule 2. The id may be one that the digits of a name hide: Agent 7 9900 0111 2223 3344 50.
func (d *decision) trusted() bool {
	for _, id := range slices.Concat(d.text.ids, d.text.maybe) {
		owners := d.ids[id]
		others := func(r *readmodel.Row) bool { return r.ChatID() != id }
		if len(owners) == 0 || slices.ContainsFunc(owners, accused) || slices.ContainsFunc(d.named, others) || d.moreNamed {
			continue
		}

		isOwn := func(r *readmodel.Row) bool { return d.text.isBeside(id, r.Name()) }
		if d.text.id == id || slices.ContainsFunc(owners, isOwn) {
			d.v.Value, d.v.Reason, d.v.Rows = Trusted, ByID, owners
			return true
		}
	}
	return false
}

// accusedByName is rule 3.
func (d *decision) accusedByName() bool {
	if len(d.text.ids) > 0 || slices.ContainsFunc(d.named, trusted) || d.moreNamed {
		return false
	}
	d.addAccused(d.named...)
	return d.accuse(ByName)
}

// trustedName is rule 4.
func (d *decision) trustedName() bool {
	if len(d.named) == 0 || slices.ContainsFunc(d.named, accused) || d.moreNamed {
		return false
	}
	d.v.Value, d.v.Reason, d.v.Rows = TrustedName, ByName, d.named
	return true
}

// caution is rule 5.
func (d *decision) caution() bool {
	d.list()
	isSomebodys := func(f Finding) bool { return len(f.Rows) > 0 }
	if !slices.ContainsFunc(d.v.Findings, isSomebodys) && !d.moreNamed && !d.moreAlike {
		d.v.Findings = nil
		return false
	}
	d.v.Value, d.v.Reason = Caution, d.why()

	ids := slices.DeleteFunc(slices.Clone(d.v.Findings), func(f Finding) bool { return !f.IsID() || f.Text == d.text.whole })
	if listed := slices.IndexFunc(ids, isSomebodys); listed >= 0 {
		d.v.Alone = ids[listed].Text
	} else if len(ids) > 0 {
		d.v.Alone = ids[0].Text
	}
	return true
}

// why returns the reason of a caution.
func (d *decision) why() Reason {
	unlisted, names := false, false
	for _, f := range d.v.Findings {
		switch {
		case f.Kind == Name:
			names = true
		case f.Kind == ID && len(f.Rows) == 0:
			unlisted = true
		case f.Kind == ID && !slices.ContainsFunc(f.Rows, accused):
			return Beside
		}
	}

	isAlike := false
	for i, run := range d.text.runs {
		isAlike = isAlike || run.isWhole && len(d.alike[i]) > 0
	}
	switch {
	case slices.ContainsFunc(d.named, accused) && slices.ContainsFunc(d.named, trusted):
		return Shared
	case unlisted && names:
		return OtherID
	case isAlike:
		return Alike
	}
	return InText
}

// none is rule 6, and the one reason for which it fails.
func (d *decision) none() bool {
	if len(d.text.id) < minIssued {
		return false
	}
	d.v.Value, d.v.Reason = None, ByID
	if d.near {
		d.v.Value, d.v.Reason = Unchecked, OneDigitOff
	}
	return true
}

// list lists what was found, each entry once. Words that are a part of longer ones that are somebody's say
// nothing of their own.
func (d *decision) list() {
	t := &d.text
	d.v.Findings = nil
	listed := map[*readmodel.Row]bool{}
	add := func(text string, kind Kind, rows ...*readmodel.Row) {
		f := Finding{Text: text, Kind: kind}
		for _, r := range rows {
			if r != nil && !listed[r] {
				listed[r] = true
				f.Rows = append(f.Rows, r)
			}
		}
		if len(f.Rows) > 0 || kind == ID && len(rows) == 0 {
			d.v.Findings = append(d.v.Findings, f)
		}
	}

	isSomebodys := func(id string) bool { return len(d.ids[id]) > 0 }
	maybe := slices.DeleteFunc(slices.Clone(t.maybe), func(id string) bool { return !isSomebodys(id) })
	for _, id := range slices.Concat(t.ids, maybe) {
		if isSomebodys(id) || len(maybe) == 0 { // else its digits are those of maybe
			add(id, ID, d.ids[id]...)
		}
	}
	for i, page := range t.pages {
		add(page.text, Number, d.pages[i])
	}
	for _, word := range t.words {
		add(word, Number, slices.Concat(d.ids[word], d.numbers[word])...)
	}

	add(t.whole, Name, d.named...)
	if len(d.blank) > 0 {
		add(t.blanks[0], Name, d.blank...)
	}
	var longer []run
	for i, run := range t.runs {
		if len(d.alike[i]) > 0 && !slices.ContainsFunc(longer, run.isWithin) {
			longer = append(longer, run)
			add(run.text, Name, d.alike[i]...)
		}
	}
}
