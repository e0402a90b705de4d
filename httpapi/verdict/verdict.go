// Package verdict decides the answer of the person check to a pasted text: any of seven values, with a reason and the
// entries that were found. Frightened people act on it, so nothing but these rules may decide whether somebody is accused or
// vouched for. The first rule that holds decides:
//
//	1  accused, risk  the text has an accused's id of 15 to 20 digits, or the address of an accused's page; or the
//	                  whole text is another chat id of an accused, or the number of a report on an accused, and no
//	                  trusted person has that name
//	2  trusted        the whole text is one id of trusted persons, alone or beside the name of the id's owner, and
//	                  the text is nobody else's name
//	3  accused, risk  the whole text is a name of accused, of no trusted person, and there is no id in it
//	4  trusted-name   the whole text is a name of trusted persons, and of nobody accused
//	5  caution        in some reading of the text, digits are somebody's, or words are or look like somebody's name
//	6  none           the whole text is one id of 17 to 20 digits, on no list and not one digit off a listed one
//	7  unchecked      everything else
//
// Rules 2, 3, 4 and 6 read nothing into a text: the whole text is an id or a name. Rule 5 has readings: guesses at the meaning
// of the text. Readings can only warn, so a better reading can be added at any time. A name is never cleared, since anybody can
// take another name.
//
// Start with [Check]. text.go reads a text: its literal forms for rules 1 to 4 and 6, and its readings for rule 5.
// verdict.go looks all of them up in one view, and has the rules.
package verdict

import (
	"cmp"
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

// Reason is the reason for a value.
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
	Findings []Finding        // ids first, then the longest words; no entry is in two of them
	Alone    string           // of a Caution: an id that stands beside other text, to be checked alone; or ""
}

// Finding is a part of the text, and the entries that it points to.
type Finding struct {
	Text string
	Kind Kind
	Rows []*readmodel.Row // empty for an id that is on no list
}

// Kind says how a part of a text points to entries.
type Kind uint8

// The kinds of findings.
const (
	ID     Kind = iota // 15 to 20 digits
	Number             // the number or the page of an entry, or a chat id of another form
	Name
)

// Finder finds entries. A *readmodel.View is one.
type Finder interface {
	Who(ctx context.Context, q *readmodel.Question) (readmodel.Answer, error)
	Entry(l events.List, id string) *readmodel.Row
}

// Check returns the verdict on search and id, the two fields of the page: together they are one text. Check fails only
// if ctx ends.
func Check(ctx context.Context, in Finder, search, id string) (Verdict, error) {
	t := readText(search, id)
	f, err := find(ctx, in, t)
	if err != nil {
		return Verdict{}, err
	}

	v := f.decide()
	if v.Value != None {
		return v, nil
	}

	// An id on no list may be a listed id with a typing mistake.
	near, err := in.Who(ctx, &readmodel.Question{IDs: oneDigitOff(t.id)})
	if err != nil {
		return Verdict{}, err
	}
	if len(slices.Concat(near.IDs...)) > 0 {
		v.Value = Unchecked
		v.Reason = OneDigitOff
	}
	return v, nil
}

// found is a text, and the entries that its parts point to.
type found struct {
	text text

	ids     map[string][]*readmodel.Row // by chat id
	numbers map[string][]*readmodel.Row // by the number of a report, or by entry id
	pages   []Finding                   // the pages in the text whose entries exist
	named   []*readmodel.Row            // whose literal name is the whole text
	blank   []*readmodel.Row            // whose literal name is an invisible word
	alike   [][]*readmodel.Row          // for each of text.runs: whose name looks like the run

	moreNamed bool // named and blank are incomplete, because too many entries have such a name
	moreAlike bool // alike is incomplete, because too many entries have such a name
}

// find looks up all parts of a text at once.
func find(ctx context.Context, in Finder, t text) (*found, error) {
	q := readmodel.Question{
		IDs:      slices.Concat(t.ids, t.groupings, t.numbers),
		Numbers:  t.numbers,
		Literals: slices.Concat(t.names, t.blanks),
	}

	for _, r := range t.runs {
		q.Cores = append(q.Cores, r.core)
	}

	a, err := in.Who(ctx, &q)
	if err != nil {
		return nil, err
	}

	f := &found{
		text:      t,
		ids:       map[string][]*readmodel.Row{},
		numbers:   map[string][]*readmodel.Row{},
		alike:     a.Cores,
		moreNamed: a.MoreLiterals,
		moreAlike: a.MoreCores,
	}

	for i, id := range q.IDs {
		f.ids[id] = a.IDs[i]
	}

	for i, number := range q.Numbers {
		f.numbers[number] = a.Numbers[i]
	}

	for _, page := range t.pages {
		if r := in.Entry(page.list, page.entryID); r != nil {
			f.pages = append(f.pages, Finding{Text: page.address, Kind: Number, Rows: []*readmodel.Row{r}})
		}
	}

	// The question's literals are first the names and then the blanks. The answer has the same order.
	f.named = slices.Concat(a.Literals[:len(t.names)]...)
	f.blank = slices.Concat(a.Literals[len(t.names):]...)
	return f, nil
}

func isAccused(r *readmodel.Row) bool { return r.List() != events.Legit }
func isTrusted(r *readmodel.Row) bool { return r.List() == events.Legit }

// decide applies the rules in their order.
func (f *found) decide() Verdict {
	findings := f.listFindings()

	// Rules 1 and 2: ids.
	if rows := f.accusedByID(); len(rows) > 0 {
		return Verdict{Value: accuse(rows), Reason: ByID, Rows: rows, Findings: findings}
	}
	if rows := f.trustedByID(); len(rows) > 0 {
		return Verdict{Value: Trusted, Reason: ByID, Rows: rows, Findings: findings}
	}

	// Rules 3 and 4: names. If more entries have the name than were read, the others may be anybody's.
	accusedHaveName := slices.ContainsFunc(f.named, isAccused)
	trustedHaveName := slices.ContainsFunc(f.named, isTrusted)
	onlyAccusedHaveName := accusedHaveName && !trustedHaveName && !f.moreNamed
	onlyTrustedHaveName := trustedHaveName && !accusedHaveName && !f.moreNamed
	if onlyAccusedHaveName && len(f.text.ids) == 0 {
		return Verdict{Value: accuse(f.named), Reason: ByName, Rows: f.named, Findings: findings}
	}
	if onlyTrustedHaveName {
		return Verdict{Value: TrustedName, Reason: ByName, Rows: f.named, Findings: findings}
	}

	// Rule 5: a part of the text is somebody's.
	if slices.ContainsFunc(findings, isListed) || f.moreNamed || f.moreAlike {
		return Verdict{Value: Caution, Reason: f.explainCaution(findings), Findings: findings, Alone: f.idToCheckAlone(findings)}
	}

	// Rules 6 and 7: nobody was found. The text stays unchecked if it is no id of at least minIssued digits. Check replaces
	// None by Unchecked for an id one digit off a listed id.
	if len(f.text.id) < minIssued {
		return Verdict{Value: Unchecked}
	}
	return Verdict{Value: None, Reason: ByID, Findings: findings}
}

// accuse returns the value of an accusation.
func accuse(rows []*readmodel.Row) Value {
	if slices.ContainsFunc(rows, (*readmodel.Row).Verified) {
		return Accused
	}
	return Risk
}

// accusedByID returns the accused whom rule 1 finds by an id or a page in the text, or by the whole text.
func (f *found) accusedByID() []*readmodel.Row {
	var rows []*readmodel.Row
	for _, id := range f.text.ids {
		rows = append(rows, f.ids[id]...)
	}

	for _, page := range f.pages {
		rows = append(rows, page.Rows...)
	}

	// The whole text may also be a chat id of another form, or a report's number. It accuses nobody if it may be a trusted
	// person's name. With moreNamed, such a person may be among the entries that were not read.
	whole := f.text.whole
	mayBeTrustedName := slices.ContainsFunc(f.named, isTrusted) || f.moreNamed
	if !mayBeTrustedName {
		rows = append(rows, f.ids[whole]...)
		// f.numbers has entries by their entry id, too, and an entry id accuses nobody.
		for _, r := range f.numbers[whole] {
			if r.ReportID() == whole {
				rows = append(rows, r)
			}
		}
	}
	return slices.DeleteFunc(distinct(rows), isTrusted)
}

// trustedByID returns the trusted persons of rule 2. The groupings of digits count, too, since a name may end with digits
// next to the digits of the id: "Agent 7 9900 0111 2223 3344 50".
func (f *found) trustedByID() []*readmodel.Row {
	for _, id := range slices.Concat(f.text.ids, f.text.groupings) {
		owners := f.ids[id]
		areTrusted := len(owners) > 0 && !slices.ContainsFunc(owners, isAccused)
		if areTrusted && f.isOnlyIDOf(owners, id) && !f.mayNameAnother(id) {
			return owners
		}
	}
	return nil
}

// isOnlyIDOf reports whether the whole text is the id, alone or beside the literal name of an owner.
func (f *found) isOnlyIDOf(owners []*readmodel.Row, id string) bool {
	isBeside := func(r *readmodel.Row) bool { return f.text.isBeside(id, r.Name()) }
	return f.text.id == id || slices.ContainsFunc(owners, isBeside)
}

// mayNameAnother reports whether the whole text is, or may be, the name of somebody with another id.
func (f *found) mayNameAnother(id string) bool {
	isOther := func(r *readmodel.Row) bool { return r.ChatID() != id }
	return f.moreNamed || slices.ContainsFunc(f.named, isOther)
}

// explainCaution returns the reason of a caution. If several reasons hold, the first one below counts.
func (f *found) explainCaution(findings []Finding) Reason {
	isName := func(part Finding) bool { return part.Kind == Name }
	isUnlistedID := func(part Finding) bool { return part.Kind == ID && !isListed(part) }
	isTrustedID := func(part Finding) bool {
		return part.Kind == ID && isListed(part) && !slices.ContainsFunc(part.Rows, isAccused)
	}

	if slices.ContainsFunc(findings, isTrustedID) {
		return Beside // rule 2 has not vouched for this id
	}
	if slices.ContainsFunc(f.named, isAccused) && slices.ContainsFunc(f.named, isTrusted) {
		return Shared
	}
	if slices.ContainsFunc(findings, isUnlistedID) && slices.ContainsFunc(findings, isName) {
		return OtherID
	}

	for i, r := range f.text.runs {
		if r.isWhole && len(f.alike[i]) > 0 {
			return Alike
		}
	}

	return InText
}

// idToCheckAlone returns the first listed id beside other text, else the first id beside other text, or "".
func (f *found) idToCheckAlone(findings []Finding) string {
	first := ""
	for _, part := range findings {
		isBesideText := part.Kind == ID && part.Text != f.text.whole
		if !isBesideText {
			continue
		}
		if isListed(part) {
			return part.Text
		}
		first = cmp.Or(first, part.Text)
	}
	return first
}

func isListed(f Finding) bool { return len(f.Rows) > 0 }

// listFindings returns the parts of the text with their entries, and the ids that are nobody's. Each entry is only in the first
// part that has it. A part whose entries are all in earlier parts is left out.
func (f *found) listFindings() (findings []Finding) {
	known := map[*readmodel.Row]bool{}
	isKnown := func(r *readmodel.Row) bool { return known[r] }
	for _, part := range f.listParts() {
		isNobodysID := part.Kind == ID && !isListed(part)
		part.Rows = slices.DeleteFunc(distinct(part.Rows), isKnown)
		for _, r := range part.Rows {
			known[r] = true
		}

		hasNewRows := len(part.Rows) > 0
		if isNobodysID || hasNewRows {
			findings = append(findings, part)
		}
	}
	return findings
}

// listParts returns the parts of the text with all their entries: ids, then pages and numbers, then names.
func (f *found) listParts() (parts []Finding) {
	t := &f.text

	// Show every id in the text. But if a grouping of digits is somebody's, show only ids and groupings that are somebody's.
	ids := t.ids
	isSomebodys := func(id string) bool { return len(f.ids[id]) > 0 }
	isNobodys := func(id string) bool { return len(f.ids[id]) == 0 }
	if slices.ContainsFunc(t.groupings, isSomebodys) {
		ids = slices.DeleteFunc(slices.Concat(t.ids, t.groupings), isNobodys)
	}
	for _, id := range ids {
		parts = append(parts, Finding{Text: id, Kind: ID, Rows: f.ids[id]})
	}

	parts = append(parts, f.pages...)
	for _, word := range t.numbers {
		parts = append(parts, Finding{Text: word, Kind: Number, Rows: slices.Concat(f.ids[word], f.numbers[word])})
	}

	parts = append(parts, Finding{Text: t.whole, Kind: Name, Rows: f.named})
	if len(f.blank) > 0 {
		parts = append(parts, Finding{Text: t.blanks[0], Kind: Name, Rows: f.blank})
	}

	// The longest runs come first. If a run is somebody's, the runs within it say nothing.
	var listed []run
	for i, r := range t.runs {
		if len(f.alike[i]) > 0 && !slices.ContainsFunc(listed, r.isWithin) {
			listed = append(listed, r)
			parts = append(parts, Finding{Text: r.text, Kind: Name, Rows: f.alike[i]})
		}
	}

	return parts
}
