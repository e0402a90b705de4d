package httpapi

import (
	"slices"
	"strconv"
	"strings"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// list serves GET /api/scammers, /api/servers and /api/legit (httpapi/CONTRACT.md#lists).
func (p *Public) list(l events.List) handler {
	return func(x *exchange) error {
		q, err := parseList(l, x.query())
		if err != nil {
			return err
		}
		if err := x.loadView(); err != nil {
			return err
		}
		if sent, err := x.sendKnown(p.listCache, x.view.ListTag(&q)); sent || err != nil {
			return err
		}

		found, _, err := x.findList(q)
		if err != nil {
			return err
		}

		size := sizeOf(found.Rows) + sizeOfEnvelope
		if err := x.takeMemory(size); err != nil {
			return err
		}
		return x.send(AppendPage(make([]byte, 0, size), found))
	}
}

// sizeOfEnvelope is room for what a body has beside its entries.
const sizeOfEnvelope = 256

// findList returns a page of a list, and its totals. A text search takes its turn, and so does the lookup of an id that many
// entries share.
func (x *exchange) findList(q readmodel.ListQuery) (readmodel.Page, readmodel.Totals, error) {
	leave, err := x.takeTurn(q.ID == "" && q.Search != "" || x.view.ManyWithID(q.ID))
	if err != nil {
		return readmodel.Page{}, readmodel.Totals{}, err
	}
	defer leave()
	return x.view.ListTotals(x.ctx(), q)
}

// check serves GET /api/check (httpapi/CONTRACT.md#check).
func (p *Public) check(x *exchange) error {
	q, err := parseCheck(x.query())
	if err != nil {
		return err
	}
	if err := x.loadView(); err != nil {
		return err
	}
	if sent, err := x.sendKnown(checkCache, x.view.CheckTag()); sent || err != nil {
		return err
	}

	leave, err := x.takeTurn(q.ID == "" || x.view.ManyWithID(q.ID))
	if err != nil {
		return err
	}
	found, err := x.view.Check(x.ctx(), q)
	leave()
	if err != nil {
		return err
	}

	size := sizeOfCheck(found) + sizeOfEnvelope
	if err := x.takeMemory(size); err != nil {
		return err
	}
	return x.send(AppendCheck(make([]byte, 0, size), found))
}

// batchID is one id of a batch.
type batchID struct {
	asked string // as the client wrote it
	id    string // as understood
}

// batch serves GET /api/check/batch (httpapi/CONTRACT.md#batch).
func (p *Public) batch(x *exchange) error {
	ids, err := parseBatch(x.query())
	if err != nil {
		return err
	}
	if err := x.loadView(); err != nil {
		return err
	}
	if sent, err := x.sendKnown(policy{control: "private, max-age=10"}, x.view.CheckTag()); sent || err != nil {
		return err
	}

	body, err := x.checkAll(ids)
	if err != nil {
		return err
	}
	return x.send(body)
}

// checkAll makes the body of a batch. It takes memory for each result before it appends it.
func (x *exchange) checkAll(ids []batchID) ([]byte, error) {
	leave, err := x.takeTurn(slices.ContainsFunc(ids, func(b batchID) bool { return x.view.ManyWithID(b.id) }))
	if err != nil {
		return nil, err
	}
	defer leave()

	size := sizeOfEnvelope
	body := []byte(`{"results":[`)
	for i, b := range ids {
		found, err := x.view.Check(x.ctx(), readmodel.CheckQuery{ID: b.id})
		if err != nil {
			return nil, err
		}
		size += sizeOfCheck(found) + sizeOfEnvelope
		if err := x.takeMemory(size); err != nil {
			return nil, err
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = appendBatched(body, b.asked, found)
	}
	return append(body, "]}"...), nil
}

// parseBatch reads the query string of a batch: ids, separated by commas, each in a form of a chat id, none twice. It is a
// pure function.
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

// rangesBody is the body of GET /api/ranges.
type rangesBody struct {
	Version string `json:"version"`
	Buckets int    `json:"buckets"`
	Lines   int    `json:"lines"`
	Entries Counts `json:"entries"`
}

// ranges serves GET /api/ranges (httpapi/CONTRACT.md#ranges).
func (p *Public) ranges(x *exchange) error {
	if err := readParams(x.query()).err; err != nil {
		return err
	}
	if err := x.loadView(); err != nil {
		return err
	}
	return x.sendJSON(checkCache, x.view.CheckTag(), rangesBody{readmodel.RangeVersion, readmodel.NumRanges, x.view.RangeLines(), CountsOf(x.view)})
}

// rangeOf serves GET /api/ranges/{prefix}. No log and no metric names the prefix.
func (p *Public) rangeOf(x *exchange) error {
	bucket, err := parseBucket(x.c.Param("prefix"), x.c.Request.URL.RawPath)
	if err != nil {
		return err
	}
	if err := readParams(x.query()).err; err != nil {
		return err
	}
	if err := x.loadView(); err != nil {
		return err
	}

	x.media = plainText
	cache := policy{control: "public, s-maxage=30, no-transform", cdn: p.listCache.cdn, asIs: true}
	if sent, err := x.sendKnown(cache, x.view.RangeTag(bucket)); sent || err != nil {
		return err
	}
	return x.send(x.view.AppendRange(nil, bucket))
}

// parseBucket reads the prefix of a range: three hexadecimal digits, not escaped, so that each range has one address in
// caches. It is a pure function.
func parseBucket(prefix, escaped string) (int, error) {
	n, err := strconv.ParseUint(prefix, 16, 12)
	if err != nil || len(prefix) != 3 || escaped != "" || strings.ToLower(prefix) != prefix {
		return 0, invalid("prefix")
	}
	return int(n), nil
}
