package verdict

import (
	"context"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel"
)

// Finder looks people up. A *readmodel.View is one.
type Finder interface {
	// WithID returns who has exactly this chat id.
	WithID(id string) []*readmodel.Row
	// WithNumber returns the entries that have this entry id, or this number of their report.
	WithNumber(number string) []*readmodel.Row
	// WithNames returns for each name who has it, or one that a person could take for it, and
	// whether that is all.
	WithNames(ctx context.Context, names []string) ([][]readmodel.Namesake, bool, error)
}

// Found is what was found of what a paste seeks.
type Found struct {
	Hits     [][]Hit // of each
	Complete bool    // there is no more
}

// Find looks up all that a paste seeks, as [Decide] wants it. Its errors are the finder's.
func Find(ctx context.Context, in Finder, p *paste.Paste) (found Found, err error) {
	var names []string
	for _, s := range p.Sought {
		names = append(names, s.Names...)
	}
	namesakes, complete, err := in.WithNames(ctx, names)
	if err != nil {
		return Found{}, err
	}
	found = Found{make([][]Hit, len(p.Sought)), complete}
	folded := foldings{}
	for i, s := range p.Sought {
		switch {
		case s.ID != "":
			found.Hits[i] = hitsOf(in.WithID(s.ID), s.ID, func(r *readmodel.Row) bool { return !s.Server || r.List() == events.Servers })
		case s.Number != "":
			found.Hits[i] = hitsOf(in.WithNumber(s.Number), s.Number, func(r *readmodel.Row) bool { return s.List == "" || r.List() == s.List && r.ID() == s.Number })
		default:
			found.Hits[i] = folded.named(&s, namesakes[:len(s.Names)])
			namesakes = namesakes[len(s.Names):]
			for _, raw := range s.Raw {
				if !paste.Digits(raw) { // those are sought as an id
					found.Hits[i] = append(found.Hits[i], hitsOf(in.WithID(raw), raw, nil)...)
				}
			}
		}
	}
	return found, nil
}

// hitsOf returns the rows that are accepted as hits of an id.
func hitsOf(rows []*readmodel.Row, as string, accept func(*readmodel.Row) bool) (hits []Hit) {
	for _, r := range rows {
		if accept == nil || accept(r) {
			hits = append(hits, Hit{entryOf(r), Same, as})
		}
	}
	return hits
}

func entryOf(r *readmodel.Row) Entry {
	return Entry{r.List(), r.ID(), r.ChatID(), r.Name(), r.Verified()}
}

// foldings remembers folded names: namesakes have the same ones.
type foldings map[string]string

func (f foldings) fold(name string) string {
	folded, ok := f[name]
	if !ok {
		folded = paste.Folded(name)
		f[name] = folded
	}
	return folded
}

// named returns the namesakes of a name's readings as hits, each once, as near as it is in any.
func (f foldings) named(s *paste.Sought, readings [][]readmodel.Namesake) (hits []Hit) {
	seen := map[*readmodel.Row]int{}
	for i, namesakes := range readings {
		for _, n := range namesakes {
			h := Hit{entryOf(n.Row), Alike, s.Names[i]}
			if !n.Alike {
				h.Near = Dressed
				for _, raw := range s.Raw {
					if f.fold(raw) == f.fold(h.Name) {
						h.Near, h.As = Same, raw
					}
				}
			}
			if at, ok := seen[n.Row]; !ok {
				seen[n.Row] = len(hits)
				hits = append(hits, h)
			} else if h.Near < hits[at].Near {
				hits[at] = h
			}
		}
	}
	return hits
}
