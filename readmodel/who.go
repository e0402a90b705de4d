package readmodel

import (
	"context"

	"example.org/registry/events"
	"example.org/registry/readmodel/lookalike"
)

// WithID returns who has exactly this chat id: of each list the verified entries and the others,
// the newest of each, at most MaxGroup. So many reports that nobody has confirmed hide no confirmed
// one.
func (v *View) WithID(id string) []*Row {
	var found people
	v.withChatID(id, func(_ int, r *Row) { found.add(r, 0) })
	return found.all()
}

// WithName returns who has this name or one that a person could take for it: whose look-alike key,
// with or without separators, is that of name. Of each list it returns the verified entries and the
// others, those that have the very name first, then the newest, at most MaxGroup of each. It reads
// no text and waits for no index. Its only error is ctx's.
func (v *View) WithName(ctx context.Context, name string) ([]*Row, error) {
	keys, needle := lookalike.KeysOf(name), fold(name)
	var found people
	for i, ref := range v.similarNames.namesakes(&keys) {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r := v.Row(ref)
		switch own := r.keys(); {
		case r.foldedName() == needle:
			found.add(r, 0)
		case own.Alike(keys), own.Joined().Alike(keys.Joined()):
			found.add(r, 1)
		}
	}
	return found.all(), nil
}

// people is who was found, by list, verification and rank.
type people [events.NumLists][2][2][]*Row

func (p *people) add(r *Row, rank int) {
	if !r.shown() {
		return
	}
	of := &p[r.list][0][rank]
	if !r.Verified() {
		of = &p[r.list][1][rank]
	}
	*of = keepNewest(*of, r)
}

func (p *people) all() (found []*Row) {
	for _, list := range p {
		for _, ranks := range list {
			found = append(found, firstOf(ranks[:])...)
		}
	}
	return found
}
