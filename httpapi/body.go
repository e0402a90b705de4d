package httpapi

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// FormatTime formats a time as the API does: RFC 3339 in UTC with milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Bodies with entries. Package readmodel encodes an entry once per change; a body joins these fragments, and costs only the
// copying.

// Counts is how many entries the lists show.
type Counts struct {
	Scammers int `json:"scammers"`
	Servers  int `json:"servers"`
	Legit    int `json:"legit"`
}

// CountsOf returns the counts of a view.
func CountsOf(v *readmodel.View) (c Counts) {
	for _, l := range events.Lists() {
		*c.Of(l) = v.NumEntries(l)
	}
	return c
}

// Of returns the count of a list.
func (c *Counts) Of(l events.List) *int {
	switch l {
	case events.Scammers:
		return &c.Scammers
	case events.Servers:
		return &c.Servers
	}
	return &c.Legit
}

// String returns the counts in words, as commands print them.
func (c Counts) String() string {
	return fmt.Sprintf("scammers %d, servers %d, legit %d", c.Scammers, c.Servers, c.Legit)
}

// sizeOf returns about how many bytes the entries take in a body, which is nearly all of it. A page of
// the site takes no more.
func sizeOf(rows []*readmodel.Row) (n int) {
	for _, r := range rows {
		n += len(r.JSON())
	}
	return n
}

// sizeOfCheck is sizeOf for the result of a check.
func sizeOfCheck(c readmodel.CheckResult) (n int) {
	for _, groups := range [][]readmodel.Group{c.Groups, c.Similar} {
		for _, g := range groups {
			n += sizeOf(g.Rows)
		}
	}
	return n + sizeOf(c.Imitates)
}

// sizeOfRanked is sizeOf for a page of ranked search.
func sizeOfRanked(p *readmodel.RankedPage) (n int) {
	for _, h := range p.Hits {
		n += len(h.Row.JSON())
	}
	return n
}

// sizeOfFeed is sizeOf for a page of the feed.
func sizeOfFeed(p readmodel.FeedPage) (n int) {
	for _, c := range p.Changes {
		if c.Row != nil {
			n += len(c.Row.JSON())
		}
	}
	return n
}

// AppendPage appends a page of a list (httpapi/CONTRACT.md#lists).
func AppendPage(dst []byte, p readmodel.Page) []byte {
	dst = appendEntries(append(dst, `{"data":`...), p.Rows)
	dst = strconv.AppendInt(append(dst, `,"total":`...), int64(p.Total), 10)
	dst = strconv.AppendBool(append(dst, `,"hasMore":`...), p.HasMore)
	return append(dst, '}')
}

// AppendCheck appends the result of a check (httpapi/CONTRACT.md#check).
func AppendCheck(dst []byte, c readmodel.CheckResult) []byte {
	return appendCheck(append(dst, '{'), c)
}

// appendBatched appends the result of a check in a batch, after the id as the client wrote it
// (httpapi/CONTRACT.md#batch).
func appendBatched(dst []byte, asked string, c readmodel.CheckResult) []byte {
	dst = appendText(append(dst, `{"id":`...), asked)
	return appendCheck(append(dst, ','), c)
}

func appendCheck(dst []byte, c readmodel.CheckResult) []byte {
	dst = appendGroups(append(dst, `"results":`...), c.Groups)
	if len(c.Similar) > 0 {
		dst = appendGroups(append(dst, `,"similar":`...), c.Similar)
	}
	if len(c.Imitates) > 0 {
		dst = appendEntries(append(dst, `,"imitates":`...), c.Imitates)
	}
	return append(dst, '}')
}

func appendGroups(dst []byte, groups []readmodel.Group) []byte {
	dst = append(dst, '[')
	for i, g := range groups {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, `{"kind":"`...), g.List...), `","entries":`...)
		dst = append(appendEntries(dst, g.Rows), '}')
	}
	return append(dst, ']')
}

func appendEntries(dst []byte, rows []*readmodel.Row) []byte {
	dst = append(dst, '[')
	for i, r := range rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.JSON()...)
	}
	return append(dst, ']')
}

// appendRanked appends a page of ranked search (httpapi/CONTRACT.md#ranked).
func appendRanked(dst []byte, p *readmodel.RankedPage) []byte {
	dst = append(dst, `{"results":[`...)
	for i, h := range p.Hits {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, `{"kind":"`...), h.Row.List()...), `","entry":`...)
		dst = append(append(dst, h.Row.JSON()...), `,"matches":[`...)
		for j, m := range h.Matches {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, `{"field":"`...), m.Field...), `","start":`...)
			dst = strconv.AppendInt(dst, int64(m.Start), 10)
			dst = strconv.AppendInt(append(dst, `,"end":`...), int64(m.End), 10)
			dst = append(dst, '}')
		}
		dst = append(dst, "]}"...)
	}
	dst = strconv.AppendInt(append(dst, `],"total":`...), int64(p.Total), 10)
	dst = strconv.AppendBool(append(dst, `,"hasMore":`...), p.HasMore)
	dst = append(dst, `,"facets":{`...)
	for i, l := range events.Lists() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), l...), `":`...)
		dst = strconv.AppendInt(dst, int64(p.Facets[i]), 10)
	}
	dst = append(dst, `},"suggestions":[`...)
	for i, s := range p.Suggestions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, s)
	}
	return append(dst, "]}"...)
}

// appendFeed appends a page of the feed (httpapi/CONTRACT.md#changes).
func appendFeed(dst []byte, p readmodel.FeedPage) []byte {
	dst = appendText(append(dst, `{"epoch":`...), p.Epoch)
	dst = strconv.AppendUint(append(dst, `,"since":`...), p.Since, 10)
	dst = strconv.AppendUint(append(dst, `,"until":`...), p.Until, 10)
	dst = strconv.AppendBool(append(dst, `,"upToDate":`...), p.UpToDate)
	dst = append(dst, `,"changes":[`...)
	for i, c := range p.Changes {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendChange(dst, c)
	}
	return append(dst, "]}"...)
}

// opOf returns how a client applies a change: "set" or "remove".
func opOf(c readmodel.Change) string {
	if c.Row == nil {
		return "remove"
	}
	return "set"
}

// appendChange appends a change of the feed (httpapi/CONTRACT.md#changes).
func appendChange(dst []byte, c readmodel.Change) []byte {
	dst = strconv.AppendUint(append(dst, `{"seq":`...), c.Sequence, 10)
	dst = append(append(dst, `,"op":"`...), opOf(c)...)
	dst = append(append(append(dst, `","list":"`...), c.List...), '"')
	if c.Row == nil { // ids need no escaping
		return append(append(append(dst, `,"_id":"`...), c.ID...), `"}`...)
	}
	dst = c.Row.Reported().AppendFormat(append(dst, `,"reportedAt":"`...), time.RFC3339Nano)
	return append(append(append(dst, `","entry":`...), c.Row.JSON()...), '}')
}

// appendText appends s, which is valid UTF-8, as a JSON string.
func appendText(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
