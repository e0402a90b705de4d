package verdict

import (
	"context"
	"fmt"

	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel"
)

// Finder looks people up. A *readmodel.View is one.
type Finder interface {
	// WithID returns who has exactly this chat id.
	WithID(id string) []*readmodel.Row
	// WithName returns who has this name, or one that a person could take for it.
	WithName(ctx context.Context, name string) ([]*readmodel.Row, error)
}

// Find looks up every subject of a paste, as [Decide] wants it. Its errors are the finder's.
func Find(ctx context.Context, in Finder, p paste.Paste) (found [][]Entry, err error) {
	found = make([][]Entry, len(p.Subjects))
	for i, s := range p.Subjects {
		rows := in.WithID(s.ID)
		for _, n := range s.Names {
			named, err := in.WithName(ctx, n.Text)
			if err != nil {
				return nil, err
			}
			rows = append(append(rows, named...), in.WithID(n.Text)...)
		}
		if found[i], err = entriesOf(rows); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// entriesOf returns the entries of rows, each once.
func entriesOf(rows []*readmodel.Row) (all []Entry, err error) {
	seen := make(map[*readmodel.Row]bool, len(rows))
	for _, r := range rows {
		if seen[r] {
			continue
		}
		seen[r] = true
		public, err := r.Public()
		if err != nil {
			return nil, fmt.Errorf("verdict: %w", err)
		}
		all = append(all, Entry{r.List(), r.ID(), r.ChatID(), public.Name, r.Verified()})
	}
	return all, nil
}
