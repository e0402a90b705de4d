package httpapi

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"example.org/registry/httpapi/body"
	"example.org/registry/httpapi/respond"
	"example.org/registry/readmodel"
)

// rangesBody is the body of GET /api/ranges.
type rangesBody struct {
	Version string      `json:"version"`
	Buckets int         `json:"buckets"`
	Lines   int         `json:"lines"`
	Entries body.Counts `json:"entries"`
}

// ranges serves GET /api/ranges (httpapi/CONTRACT.md#ranges).
func (p *Public) ranges() handler {
	return p.cacheable(&route{
		policy: p.checkCache,
		parse:  func(raw string) (q query, err error) { return q, readParams(raw).err },
		tag:    func(at state, _ *query) *respond.Tags { return &at.headers.tags.check },
		build: func(_ context.Context, at state, _ *query, dst []byte) ([]byte, error) {
			text, err := json.Marshal(rangesBody{readmodel.RangeVersion, readmodel.NumRanges, at.view.RangeLines(), body.CountsOf(at.view)})
			return append(dst, text...), err
		},
	})
}

// rangeOf serves GET /api/ranges/{prefix}. No log and no metric names the prefix.
func (p *Public) rangeOf() handler {
	return p.cacheable(&route{
		policy: &respond.Policy{Control: []string{"public, s-maxage=30, no-transform"}, CDN: p.listCache.CDN, AsIs: true},
		media:  []string{plainText}, name: rangePrefix, parse: parseRange,
		tag: func(at state, q *query) *respond.Tags { return new(respond.NewTags(at.view.RangeTag(q.bucket))) },
		build: func(_ context.Context, at state, q *query, dst []byte) ([]byte, error) {
			return at.view.AppendRange(dst, q.bucket), nil
		},
	})
}

// rangePrefix returns the prefix in the address of a range: three unescaped hexadecimal digits, so
// that each range has one address in caches.
func rangePrefix(c *gin.Context) (string, error) {
	prefix := c.Param("prefix")
	if len(prefix) != 3 || strings.Trim(prefix, "0123456789abcdef") != "" || c.Request.URL.RawPath != "" {
		return "", invalid("prefix")
	}
	return prefix, nil
}

// parseRange reads "<prefix>?<query string>". It is a pure function.
func parseRange(raw string) (q query, err error) {
	prefix, raw, _ := strings.Cut(raw, "?")
	n, _ := strconv.ParseUint(prefix, 16, 12) // rangePrefix has checked it
	q.bucket = int(n)
	return q, readParams(raw).err
}
