package httpapi

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// This file makes bodies with entries. Package readmodel encodes each entry once, when it changes, so a body is made by copying
// the JSON of its entries.

// Counts is how many entries the lists show.
type Counts struct {
	Scammers int `json:"scammers"`
	Servers  int `json:"servers"`
	Legit    int `json:"legit"`
}

// CountsOf returns the counts of a view.
func CountsOf(v *readmodel.View) Counts {
	return Counts{Scammers: v.NumEntries(events.Scammers), Servers: v.NumEntries(events.Servers), Legit: v.NumEntries(events.Legit)}
}

// String returns the counts in words, as commands print them.
func (c Counts) String() string {
	return fmt.Sprintf("scammers %d, servers %d, legit %d", c.Scammers, c.Servers, c.Legit)
}

// formatTime formats a time as RFC 3339 in UTC with milliseconds.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// sizeOf returns the length of the entries' JSON. It estimates the size of a body with these entries, or of a page of the site.
func sizeOf(rows []*readmodel.Row) (n int) {
	for _, r := range rows {
		n += len(r.JSON())
	}
	return n
}

func sizeOfCheck(c readmodel.CheckResult) int {
	n := sizeOf(c.Imitates)
	for _, groups := range [][]readmodel.Group{c.Groups, c.Similar} {
		for _, g := range groups {
			n += sizeOf(g.Rows)
		}
	}
	return n
}

func sizeOfRanked(p *readmodel.RankedPage) (n int) {
	for _, h := range p.Hits {
		n += len(h.Row.JSON())
	}
	return n
}

// sizeOfChange estimates the bytes of a change besides its entry.
const sizeOfChange = 128

func sizeOfFeed(p *readmodel.FeedPage) int {
	n := len(p.Changes) * sizeOfChange
	for _, c := range p.Changes {
		if c.Row != nil {
			n += len(c.Row.JSON())
		}
	}
	return n
}

// appendArray appends a JSON array.
func appendArray[T any](dst []byte, items []T, appendItem func(dst []byte, item T) []byte) []byte {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendItem(dst, item)
	}
	return append(dst, ']')
}

func appendEntries(dst []byte, rows []*readmodel.Row) []byte {
	return appendArray(dst, rows, func(dst []byte, r *readmodel.Row) []byte { return append(dst, r.JSON()...) })
}

// appendText appends s, which is valid UTF-8, as a JSON string.
func appendText(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// appendPage appends a page of a list (httpapi/CONTRACT.md#lists).
func appendPage(dst []byte, p readmodel.Page) []byte {
	dst = append(dst, `{"data":`...)
	dst = appendEntries(dst, p.Rows)
	return fmt.Appendf(dst, `,"total":%d,"hasMore":%t}`, p.Total, p.HasMore)
}

// appendCheck appends the result of a check (httpapi/CONTRACT.md#check).
func appendCheck(dst []byte, c readmodel.CheckResult) []byte {
	return appendFindings(append(dst, '{'), c)
}

// appendFindings appends the result of a check without the opening brace, after which a batch has an id.
func appendFindings(dst []byte, c readmodel.CheckResult) []byte {
	dst = appendArray(append(dst, `"results":`...), c.Groups, appendGroup)
	if len(c.Similar) > 0 {
		dst = appendArray(append(dst, `,"similar":`...), c.Similar, appendGroup)
	}
	if len(c.Imitates) > 0 {
		dst = appendEntries(append(dst, `,"imitates":`...), c.Imitates)
	}
	return append(dst, '}')
}

func appendGroup(dst []byte, g readmodel.Group) []byte {
	dst = fmt.Appendf(dst, `{"kind":"%s","entries":`, g.List)
	return append(appendEntries(dst, g.Rows), '}')
}

// appendBatch appends the results of a batch, each with the id as the client wrote it (httpapi/CONTRACT.md#batch).
func appendBatch(dst []byte, batch []batchResult) []byte {
	dst = appendArray(append(dst, `{"results":`...), batch, func(dst []byte, b batchResult) []byte {
		dst = appendText(append(dst, `{"id":`...), b.asked)
		return appendFindings(append(dst, ','), b.found)
	})
	return append(dst, '}')
}

// appendRanked appends a page of ranked search (httpapi/CONTRACT.md#ranked).
func appendRanked(dst []byte, p *readmodel.RankedPage) []byte {
	dst = appendArray(append(dst, `{"results":`...), p.Hits, func(dst []byte, h readmodel.RankedHit) []byte {
		dst = fmt.Appendf(dst, `{"kind":"%s","entry":%s,"matches":`, h.Row.List(), h.Row.JSON())
		dst = appendArray(dst, h.Matches, func(dst []byte, m readmodel.Match) []byte {
			return fmt.Appendf(dst, `{"field":"%s","start":%d,"end":%d}`, m.Field, m.Start, m.End)
		})
		return append(dst, '}')
	})

	facets := p.Facets // in the order of events.Lists
	dst = fmt.Appendf(dst, `,"total":%d,"hasMore":%t,"facets":{"scammers":%d,"servers":%d,"legit":%d},"suggestions":`,
		p.Total, p.HasMore, facets[0], facets[1], facets[2])
	return append(appendArray(dst, p.Suggestions, appendText), '}')
}

// appendFeed appends a page of the feed (httpapi/CONTRACT.md#changes).
func appendFeed(dst []byte, p *readmodel.FeedPage) []byte {
	dst = appendText(append(dst, `{"epoch":`...), p.Epoch)
	dst = fmt.Appendf(dst, `,"since":%d,"until":%d,"upToDate":%t,"changes":`, p.Since, p.Until, p.UpToDate)
	return append(appendArray(dst, p.Changes, appendChange), '}')
}

func appendChange(dst []byte, c readmodel.Change) []byte {
	if c.Row == nil { // ids need no escaping
		return fmt.Appendf(dst, `{"seq":%d,"op":"remove","list":"%s","_id":"%s"}`, c.Sequence, c.List, c.ID)
	}
	return fmt.Appendf(dst, `{"seq":%d,"op":"set","list":"%s","reportedAt":"%s","entry":%s}`,
		c.Sequence, c.List, c.Row.Reported().Format(time.RFC3339Nano), c.Row.JSON())
}
