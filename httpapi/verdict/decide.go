package verdict

import (
	"cmp"
	"context"
	"slices"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// Finder looks entries up. A *readmodel.View is one.
type Finder interface {
	Who(ctx context.Context, q *readmodel.Question) (readmodel.Answer, error)
}

// Found has the entries that were found for a paste.
type Found struct {
	ids, numbers, literals map[string][]*readmodel.Row
	runs                   [][]*readmodel.Row // of Paste.Runs
	near                   bool               // an entry has one of Paste.Near
	more, moreLiterals     bool               // a name has more entries than were read
}

// Find looks up all that a paste may point to, at once. Its errors are the finder's.
func Find(ctx context.Context, in Finder, p *paste.Paste) (f Found, err error) {
	var q readmodel.Question
	distinct := map[string]bool{}
	add := func(to *[]string, kind string, all ...string) {
		for _, s := range all {
			if !distinct[kind+s] {
				distinct[kind+s] = true
				*to = append(*to, s)
			}
		}
	}
	add(&q.IDs, "i", p.IDs...)
	add(&q.IDs, "i", p.Accuse...)
	add(&q.IDs, "i", p.Server...)
	add(&q.IDs, "i", p.Text, p.Field)
	add(&q.IDs, "i", p.Maybe...)
	add(&q.IDs, "i", p.Numbers...)
	for _, ref := range p.Own {
		add(&q.Numbers, "n", ref.ID)
	}
	add(&q.Numbers, "n", p.Numbers...)
	for _, l := range slices.Concat([]paste.Literal{p.Whole}, p.Lines, p.Parts) {
		for _, form := range l {
			add(&q.Literals, "l", form.Forms...)
		}
	}
	add(&q.Literals, "l", p.IDs...)
	for _, run := range p.Runs {
		q.Cores = append(q.Cores, run.Core)
	}
	near := len(q.IDs)
	add(&q.IDs, "i", p.Near...)
	a, err := in.Who(ctx, &q)
	if err != nil {
		return Found{}, err
	}
	keep := func(names []string, rows [][]*readmodel.Row) map[string][]*readmodel.Row {
		m := map[string][]*readmodel.Row{}
		for i, s := range names {
			if len(rows[i]) > 0 {
				m[s] = rows[i]
			}
		}
		return m
	}
	return Found{
		ids: keep(q.IDs[:near], a.IDs), numbers: keep(q.Numbers, a.Numbers), literals: keep(q.Literals, a.Literals),
		runs: a.Cores, near: slices.ContainsFunc(a.IDs[near:], func(rows []*readmodel.Row) bool { return len(rows) > 0 }),
		more: a.MoreLiterals || a.MoreCores, moreLiterals: a.MoreLiterals,
	}, nil
}

// Decide makes the verdict of a paste and of what was found of it. rd has read the paste.
func Decide(rd *paste.Reader, p *paste.Paste, found Found) Verdict {
	d := decision{rd: rd, p: p, found: found}
	d.v.Unchecked, d.v.Omitted = p.Unchecked, p.Omitted || found.more
	for _, rule := range []func() bool{d.accusedByID, d.trusted, d.accusedByName, d.trustedName, d.caution, d.none} {
		if rule() {
			break
		}
	}
	if d.v.Value == "" {
		d.unchecked()
	}
	d.list()
	return d.v
}

// decision is a verdict in the making.
type decision struct {
	rd    *paste.Reader
	p     *paste.Paste
	found Found
	v     Verdict
}

func pick(rows []*readmodel.Row, f func(*readmodel.Row) bool) (picked []*readmodel.Row) {
	for _, r := range rows {
		if f(r) {
			picked = append(picked, r)
		}
	}
	return picked
}

func loyal(r *readmodel.Row) bool { return !accused(r) }

// add adds a finding of entries that have exactly what was typed.
func (d *decision) add(f Finding, rows []*readmodel.Row) {
	for _, r := range rows {
		f.Hits = append(f.Hits, Hit{r, true, f.Text()})
	}
	sortHits(f.Hits)
	d.v.Findings = append(d.v.Findings, f)
}

func sortHits(hits []Hit) {
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(gravity(a.Row), gravity(b.Row)), cmp.Compare(boolInt(b.Same), boolInt(a.Same)))
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// accusedByID is rule 1.
func (d *decision) accusedByID() bool {
	var all []*readmodel.Row
	seen := map[string]bool{}
	accuse := func(f Finding, rows []*readmodel.Row) {
		if rows = pick(rows, accused); len(rows) == 0 || seen[f.Text()] {
			return
		}
		seen[f.Text()] = true
		all = append(all, rows...)
		f.Value, f.Reason = graded(rows), ByID
		d.add(f, rows)
	}
	p := d.p
	for _, id := range p.Accuse {
		accuse(Finding{ID: id}, d.found.ids[id])
	}
	for _, id := range p.Server {
		accuse(Finding{ID: id}, pick(d.found.ids[id], func(r *readmodel.Row) bool { return r.List() == events.Servers }))
	}
	for _, ref := range p.Own {
		accuse(Finding{Number: ref.ID}, pick(d.found.numbers[ref.ID], func(r *readmodel.Row) bool { return r.List() == ref.List && r.ID() == ref.ID }))
	}
	if p.Field != "" {
		accuse(Finding{Number: p.Field}, d.found.ids[p.Field])
	}
	if paste.IsNumber(p.Text) && !slices.ContainsFunc(d.found.literals[lookalike.Literal(p.Text)], loyal) {
		accuse(Finding{Number: p.Text}, d.found.ids[p.Text])
		if !p.HasID {
			accuse(Finding{Number: p.Text}, pick(d.found.numbers[p.Text], func(r *readmodel.Row) bool { return r.ReportID() == p.Text }))
		}
	}
	if len(all) == 0 {
		return false
	}
	d.v.Value, d.v.Reason = graded(all), ByID
	return true
}

// trusted is rule 2.
func (d *decision) trusted() bool {
	p := d.p
	if len(p.IDs) != 1 || p.Omitted || d.found.moreLiterals {
		return false
	}
	id := p.IDs[0]
	own := d.found.ids[id]
	others := func(r *readmodel.Row) bool { return r.ChatID() != id }
	if len(own) == 0 || slices.ContainsFunc(own, accused) || slices.ContainsFunc(d.found.literals[id], others) {
		return false
	}
	if p.Only && slices.ContainsFunc(d.wholeNames(), others) { // a name such as <@123…>
		return false
	}
	named := slices.ContainsFunc(own, func(r *readmodel.Row) bool { return d.rd.IsBeside(p, lookalike.Literal(r.Name())) })
	if !p.Only && !named {
		return false
	}
	d.v.Value, d.v.Reason = Trusted, ByID
	d.add(Finding{ID: id, Value: Trusted, Reason: ByID}, own)
	d.v.Namesake = slices.ContainsFunc(d.found.runs, func(rows []*readmodel.Row) bool { return slices.ContainsFunc(rows, accused) })
	return true
}

// named returns the entries whose name a text is, and the text: as it was typed, or else without labels.
func (d *decision) named(l *paste.Literal) (rows []*readmodel.Row, text string) {
	for _, form := range l {
		for _, name := range form.Forms {
			for _, r := range d.found.literals[name] {
				if !slices.Contains(rows, r) {
					rows = append(rows, r)
				}
			}
		}
		if len(rows) > 0 {
			return rows, form.Text
		}
	}
	return nil, ""
}

// wholeNames returns the entries whose name the whole text is, with or without labels.
func (d *decision) wholeNames() (rows []*readmodel.Row) {
	for _, form := range d.p.Whole {
		for _, name := range form.Forms {
			rows = append(rows, d.found.literals[name]...)
		}
	}
	return rows
}

// accusedByName is rule 3.
func (d *decision) accusedByName() bool {
	p := d.p
	if p.HasID || d.found.moreLiterals || slices.ContainsFunc(d.wholeNames(), loyal) {
		return false
	}
	for _, names := range [...][]paste.Literal{{p.Whole}, p.Lines, p.Parts} {
		var all []*readmodel.Row
		var findings []Finding
		for i := range names {
			rows, text := d.named(&names[i])
			if len(rows) == 0 {
				all = nil
				break
			}
			if !slices.ContainsFunc(rows, loyal) {
				all = append(all, rows...)
			}
			findings = append(findings, nameFinding(text, rows))
		}
		if len(all) > 0 {
			for _, f := range findings {
				if !slices.ContainsFunc(d.v.Findings, func(o Finding) bool { return o.Name == f.Name }) {
					d.v.Findings = append(d.v.Findings, f)
				}
			}
			d.v.Value, d.v.Reason = graded(all), ByName
			return true
		}
	}
	return false
}

// nameFinding is a literal name of entries.
func nameFinding(name string, rows []*readmodel.Row) (f Finding) {
	f.Name = name
	for _, r := range rows {
		f.Hits = append(f.Hits, Hit{r, true, name})
	}
	sortHits(f.Hits)
	switch bad := pick(rows, accused); {
	case len(bad) == 0:
		f.Value, f.Reason = TrustedName, ByName
	case len(bad) < len(rows):
		f.Value, f.Reason = Caution, Shared
	default:
		f.Value, f.Reason = graded(bad), ByName
	}
	return f
}

// trustedName is rule 4.
func (d *decision) trustedName() bool {
	p := d.p
	if p.Omitted || d.found.moreLiterals {
		return false
	}
	if rows, text := d.named(&p.Whole); len(rows) > 0 && !slices.ContainsFunc(d.wholeNames(), accused) {
		d.v.Findings = append(d.v.Findings, nameFinding(text, rows))
		d.v.Value, d.v.Reason = TrustedName, ByName
		d.v.Namesake = slices.ContainsFunc(d.found.runs, func(rows []*readmodel.Row) bool { return slices.ContainsFunc(rows, accused) })
		return true
	}
	number, theirs := p.Text, []*readmodel.Row(nil)
	for _, ref := range p.Own {
		if ref.Whole {
			number = ref.ID
			theirs = pick(d.found.numbers[ref.ID], func(r *readmodel.Row) bool { return r.List() == ref.List && r.ID() == ref.ID })
		}
	}
	if theirs == nil && !p.HasID && paste.IsNumber(p.Text) {
		theirs = pick(d.found.numbers[p.Text], func(r *readmodel.Row) bool { return r.ReportID() == p.Text })
	}
	if len(theirs) == 0 || slices.ContainsFunc(theirs, accused) {
		return false
	}
	d.v.Value, d.v.Reason = TrustedName, ByID
	d.add(Finding{Number: number, Value: TrustedName, Reason: ByID}, theirs)
	return true
}

// caution is rule 5.
func (d *decision) caution() bool {
	d.seek()
	if !slices.ContainsFunc(d.v.Findings, func(f Finding) bool { return len(f.Hits) > 0 }) {
		d.v.Findings = nil
		return false
	}
	d.v.Value, d.v.Reason = Caution, d.why()
	return true
}

// none is rule 6.
func (d *decision) none() bool {
	p := d.p
	if d.v.Omitted || !p.Alone && p.Plain == "" {
		return false
	}
	if d.found.near {
		d.v.Value, d.v.Reason = Unchecked, OneDigitOff
		return true
	}
	d.v.Value, d.v.Reason = None, Nobody
	for _, name := range []string{p.Plain, p.Typed} {
		if name != "" {
			d.v.words = append(d.v.words, name)
		}
	}
	if p.Alone {
		d.v.Reason = ByID
	}
	return true
}

// unchecked is rule 7.
func (d *decision) unchecked() {
	d.v.Value = Unchecked
	switch {
	case d.v.Omitted:
		d.v.Reason = TooMany
	case len(d.v.Unchecked) > 0:
		d.v.Reason = Unknown
	default:
		d.v.Reason = NotLiteral
	}
}
