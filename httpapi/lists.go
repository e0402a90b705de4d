package httpapi

import (
	"context"
	"strconv"
	"strings"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// serveList serves GET /api/scammers, /api/servers and /api/legit (httpapi/CONTRACT.md#lists).
func serveList(l events.List) handler {
	return func(x *exchange) error {
		q, err := parseList(l, x.query())
		if err != nil {
			return err
		}

		view, err := x.loadView()
		if err != nil {
			return err
		}

		// The tag names the content: if the client has this tag, or a body of this tag is kept, no query has to run.
		return x.sendKept(x.api.listCache, view.ListTag(&q), func() ([]byte, error) {
			found, err := search(x, searchesTexts(&q), func(ctx context.Context) (readmodel.Page, error) { return view.List(ctx, q) })
			if err != nil {
				return nil, err
			}
			return makeBody(x, sizeOf(found.Rows), found, appendPage)
		})
	}
}

// searchesTexts reports whether a query searches texts. An id takes precedence over a text.
func searchesTexts(q *readmodel.ListQuery) bool { return q.ID == "" && q.Search != "" }

// serveCheck serves GET /api/check (httpapi/CONTRACT.md#check).
func serveCheck(x *exchange) error {
	q, err := parseCheck(x.query())
	if err != nil {
		return err
	}

	view, err := x.loadView()
	if err != nil {
		return err
	}

	searchesTexts := q.ID == ""
	return x.sendKept(checkCache, view.CheckTag(), func() ([]byte, error) {
		found, err := search(x, searchesTexts, func(ctx context.Context) (readmodel.CheckResult, error) { return view.Check(ctx, q) })
		if err != nil {
			return nil, err
		}
		return makeBody(x, sizeOfCheck(found), found, appendCheck)
	})
}

// batchResult is one id of a batch.
type batchResult struct {
	asked string // as the client wrote it
	id    string // as understood
	found readmodel.CheckResult
}

// serveBatch serves GET /api/check/batch (httpapi/CONTRACT.md#batch).
func serveBatch(x *exchange) error {
	batch, err := parseBatch(x.query())
	if err != nil {
		return err
	}

	view, err := x.loadView()
	if err != nil {
		return err
	}

	cache := policy{control: "private, max-age=10"}
	return x.sendKept(cache, view.CheckTag(), func() ([]byte, error) {
		size := 0
		for i := range batch {
			b := &batch[i]
			b.found, err = view.Check(x.c.Request.Context(), readmodel.CheckQuery{ID: b.id})
			if err != nil {
				return nil, err
			}
			size += sizeOfCheck(b.found) + sizeOfEnvelope
		}
		return makeBody(x, size, batch, appendBatch)
	})
}

// parseBatch reads the query string of a batch: chat ids or references to them, separated by commas, none twice. It is a pure
// function.
func parseBatch(raw string) (batch []batchResult, err error) {
	p := readParams(raw)
	text := p.readTrimmedTo("ids", bounds.MaxQuery)
	if p.err != nil {
		return nil, p.err
	}
	if text == "" {
		return nil, missing("ids")
	}

	// A chat id and a reference to the same chat id count as given twice.
	seen := map[string]bool{}
	for asked := range strings.SplitSeq(text, ",") {
		id, ok := events.ReadChatID(strings.TrimSpace(asked))
		if !ok || bounds.Longer(asked, bounds.MaxValue) || seen[id] {
			return nil, invalid("ids")
		}

		seen[id] = true
		batch = append(batch, batchResult{asked: asked, id: id})
	}

	if len(batch) > bounds.MaxBatch {
		return nil, invalid("ids")
	}
	return batch, nil
}

// rangesBody is the body of GET /api/ranges.
type rangesBody struct {
	Version string `json:"version"`
	Buckets int    `json:"buckets"`
	Lines   int    `json:"lines"`
	Entries Counts `json:"entries"`
}

// serveRanges serves GET /api/ranges (httpapi/CONTRACT.md#ranges).
func serveRanges(x *exchange) error {
	if err := checkSyntax(x.query()); err != nil {
		return err
	}
	view, err := x.loadView()
	if err != nil {
		return err
	}
	return x.sendJSON(checkCache, view.CheckTag(), rangesBody{
		Version: readmodel.RangeVersion, Buckets: readmodel.NumRanges, Lines: view.Ranges().NumLines(), Entries: CountsOf(view),
	})
}

// serveRange serves GET /api/ranges/{prefix}. No log and no metric names the prefix.
func serveRange(x *exchange) error {
	bucket, err := parseBucket(x.c.Param("prefix"), x.c.Request.URL.RawPath)
	if err != nil {
		return err
	}
	if err := checkSyntax(x.query()); err != nil {
		return err
	}

	view, err := x.loadView()
	if err != nil {
		return err
	}

	// The length of a range must not tell how many entries it has, so nothing on its way may compress it.
	x.media = plainText
	cache := policy{control: "public, s-maxage=30, no-transform", cdn: x.api.listCache.cdn, asIs: true}
	return x.sendKept(cache, view.Ranges().Tag(bucket), func() ([]byte, error) { return view.Ranges().Append(nil, bucket), nil })
}

// parseBucket reads the prefix of a range: three hexadecimal digits. So that each range has one address in caches, it refuses
// capital letters and escaped digits: rawPath is empty unless something is escaped. It is a pure function.
func parseBucket(prefix, rawPath string) (bucket int, err error) {
	n, err := strconv.ParseUint(prefix, 16, 12)
	isCanonical := len(prefix) == 3 && strings.ToLower(prefix) == prefix && rawPath == ""
	if err != nil || !isCanonical {
		return 0, invalid("prefix")
	}
	return int(n), nil
}
