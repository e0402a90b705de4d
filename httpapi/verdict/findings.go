package verdict

import (
	"slices"

	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// seek adds what the readings of the text find.
func (d *decision) seek() {
	p := d.p
	for _, id := range slices.Concat(p.IDs, p.Accuse, p.Maybe) {
		rows := d.found.ids[id]
		if slices.ContainsFunc(d.v.Findings, func(f Finding) bool { return f.ID == id }) {
			continue
		}
		f := Finding{ID: id, Value: Caution, Reason: MaybeID}
		literal := slices.Contains(p.IDs, id)
		switch {
		case len(rows) == 0 && !literal:
			continue
		case len(rows) == 0:
			f.Value, f.Reason = None, Nobody
		case !slices.ContainsFunc(rows, accused):
			f.Value = TrustedName
			if literal {
				f.Reason = ByID
			}
			if d.v.Alone == "" {
				d.v.Alone = id
			}
		}
		d.add(f, rows)
	}
	numbers := append([]string{p.Field, p.Text}, p.Numbers...)
	for _, ref := range p.Own {
		numbers = append(numbers, ref.ID)
	}
	for _, number := range numbers {
		rows := slices.Concat(d.found.ids[number], d.found.numbers[number])
		if len(rows) > 0 && !slices.ContainsFunc(d.v.Findings, func(f Finding) bool { return f.Text() == number }) {
			d.add(Finding{Number: number, Value: Caution, Reason: MaybeID}, rows)
		}
	}
	d.seekNames()
}

// seekNames adds the names in the text: literal ones, and then every run of words that is somebody's. A
// run within a longer one does not count.
func (d *decision) seekNames() {
	p := d.p
	named := map[*readmodel.Row]bool{}
	for _, l := range slices.Concat([]paste.Literal{p.Whole}, p.Lines, p.Parts) {
		rows, text := d.named(&l)
		rows = slices.DeleteFunc(rows, func(r *readmodel.Row) bool { return named[r] })
		if len(rows) == 0 {
			continue
		}
		for _, r := range rows {
			named[r] = true
		}
		f := nameFinding(text, rows)
		if f.Value == Accused || f.Value == Risk { // red is for rules 1 and 3
			f.Value, f.Reason = Caution, InSentence
		}
		d.v.Findings = append(d.v.Findings, f)
	}
	for i := range p.Runs {
		run := &p.Runs[i]
		if len(d.found.runs[i]) == 0 || d.isPart(run) {
			continue
		}
		f := Finding{Name: run.Text, Value: Caution, Reason: InSentence}
		literal := lookalike.Literal(run.Text)
		for _, r := range d.found.runs[i] {
			if !named[r] {
				named[r] = true
				f.Hits = append(f.Hits, Hit{r, lookalike.Literal(r.Name()) == literal, run.Text})
			}
		}
		if len(f.Hits) == 0 {
			continue
		}
		sortHits(f.Hits)
		if same := slices.ContainsFunc(f.Hits, func(h Hit) bool { return h.Same }); run.Whole && !same {
			if f.Reason = LikeTrusted; accused(f.Hits[0].Row) {
				f.Reason = LikeAccused
			}
		}
		d.v.Findings = append(d.v.Findings, f)
	}
}

// isPart reports whether a run is a part of a longer one that is somebody's.
func (d *decision) isPart(run *paste.Run) bool {
	for i := range d.p.Runs {
		if len(d.found.runs[i]) > 0 && run.Within(&d.p.Runs[i]) {
			return true
		}
	}
	return false
}

// why returns the reason of a caution.
func (d *decision) why() Reason {
	trusted, unlisted, maybe, bad, good := 0, 0, false, false, false
	strange := false // a name of nobody who is trusted and whose id is there
	reason := Beside
	own := map[string]bool{}
	for _, f := range d.v.Findings {
		switch {
		case f.ID != "" && f.Value == TrustedName && f.Reason == ByID:
			trusted++
			own[f.ID] = true
		case f.ID != "" && f.Value == None:
			unlisted++
		case f.IsID():
			maybe = true
		}
	}
	for _, f := range d.v.Findings {
		if f.IsID() {
			continue
		}
		its := f.Reason
		if its == ByName { // a literal name that does not decide
			its = InSentence
		}
		if reason == Beside || its < reason {
			reason = its
		}
		for _, h := range f.Hits {
			bad, good = bad || accused(h.Row), good || !accused(h.Row)
		}
		strange = strange || !slices.ContainsFunc(f.Hits, func(h Hit) bool { return !accused(h.Row) && own[h.Row.ChatID()] })
	}
	switch {
	case trusted > 0 && strange:
		return OtherName
	case trusted > 0 && unlisted > 0:
		return OtherID
	case trusted > 1:
		return SeveralIDs
	case trusted > 0:
		return Beside
	case unlisted > 0 && bad:
		return OtherAccount
	case unlisted > 0 && good:
		return NotTheirs
	case maybe:
		return MaybeID
	}
	return reason
}

// list sorts the findings, the gravest first, and adds other ids and names, which did not decide the
// verdict. An id or a name that was not found is listed only if it was typed.
func (d *decision) list() {
	decided := d.v.Findings
	if d.v.Value != Caution {
		d.v.Findings = nil
		alone := d.v.Alone
		d.seek()
		d.v.Alone = alone
		for _, f := range d.v.Findings {
			known := slices.ContainsFunc(decided, func(o Finding) bool { return o.Text() == f.Text() || !f.IsID() && covers(&o, &f) })
			if !known && (d.v.Value != None || f.ID != "") {
				decided = append(decided, f)
			}
		}
		d.v.Findings = decided
	}
	if d.v.Value == None && d.p.Plain != "" {
		d.v.Findings = append(d.v.Findings, Finding{Name: d.p.Plain, Value: None, Reason: Nobody})
	}
	slices.SortStableFunc(d.v.Findings, func(a, b Finding) int { return a.Value.Gravity() - b.Value.Gravity() })
}

// covers reports whether a finding has all entries of another.
func covers(o, f *Finding) bool {
	return !slices.ContainsFunc(f.Hits, func(h Hit) bool {
		return !slices.ContainsFunc(o.Hits, func(k Hit) bool { return k.Row == h.Row })
	})
}
