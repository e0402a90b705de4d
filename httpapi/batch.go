package httpapi

import (
	"context"
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/respond"
	"example.org/registry/readmodel"
)

// batchID is one id of a batch.
type batchID struct {
	asked string // as the client wrote it
	id    string // as interpreted
}

// batch serves GET /api/check/batch (httpapi/CONTRACT.md#batch).
func (p *Public) batch() handler {
	return p.cacheable(&route{
		policy: respond.Cached("private, max-age=10"),
		parse: func(raw string) (q query, err error) {
			q.batch, err = parseBatch(raw)
			return q, err
		},
		tag: func(at state, _ *query) *respond.Tags { return &at.headers.tags.check },
		build: func(ctx context.Context, at state, q *query, dst []byte) ([]byte, error) {
			leave, err := p.searches.enter(ctx, slices.ContainsFunc(q.batch, func(b batchID) bool { return at.view.ManyWithID(b.id) }))
			if err != nil {
				return nil, err
			}
			defer leave()
			dst = append(dst, `{"results":[`...)
			for i, b := range q.batch {
				found, err := at.view.Check(ctx, readmodel.CheckQuery{ID: b.id})
				if err != nil {
					return nil, err
				}
				if err := at.room.Take(body.CheckSize(found)); err != nil {
					return nil, err
				}
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = body.AppendBatched(dst, b.asked, found)
			}
			return append(dst, "]}"...), nil
		},
	})
}

// parseBatch reads the query string of a batch: ids, separated by commas, each in the form of a
// check, none repeated. It is a pure function.
func parseBatch(raw string) ([]batchID, error) {
	p := readParams(raw)
	text := p.trimmedTo("ids", bounds.MaxQuery)
	switch {
	case p.err != nil:
		return nil, p.err
	case text == "":
		return nil, missing("ids")
	case strings.Count(text, ",") >= bounds.MaxBatch:
		return nil, invalid("ids")
	}
	var ids []batchID
	seen := map[string]bool{}
	for asked := range strings.SplitSeq(text, ",") {
		id, ok := events.ReadChatID(strings.TrimSpace(asked))
		if !ok || bounds.Longer(asked, bounds.MaxValue) || seen[id] {
			return nil, invalid("ids")
		}
		seen[id] = true
		ids = append(ids, batchID{asked, id})
	}
	return ids, nil
}
