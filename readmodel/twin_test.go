package readmodel

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"example.org/registry/events"
	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// twin is the naive read model: the last event of every subject, and a scan and a sort for every
// question. It shares with the real one only Fold and the rendering of Markdown, which have
// tables of their own (look-alike keys it makes itself, out of Unicode's files).
type twin struct {
	likeness  *twinLikeness
	entries   map[string]events.Entry // by subject
	views     map[string]int64        // by subject of the entry
	donations map[string]events.Donation
}

func newTwin() *twin {
	return &twin{newTwinLikeness(), map[string]events.Entry{}, map[string]int64{}, map[string]events.Donation{}}
}

func (w *twin) apply(d events.Data) {
	switch d := d.(type) {
	case events.Entry:
		w.entries[d.Subject()] = d
	case events.Delisting:
		delete(w.entries, d.Subject())
	case events.Views:
		w.views[events.Entry{List: d.List, EntryID: d.EntryID}.Subject()] = d.Views
	case events.Donation:
		w.donations[d.DonationID] = d
	case events.DonationRemoval:
		delete(w.donations, d.DonationID)
	}
}

// all is the last state of every subject, as events.
func (w *twin) all() []events.Data {
	var out []events.Data
	for _, e := range w.entries {
		out = append(out, e)
	}
	for subject, n := range w.views {
		at := strings.Split(subject, ".")
		out = append(out, events.Views{List: events.List(at[1]), EntryID: at[2], Views: n})
	}
	for _, d := range w.donations {
		out = append(out, d)
	}
	return out
}

type twinEntry struct {
	ID       string  `json:"_id"`
	Name     string  `json:"name"`
	Chat     string  `json:"id"`
	HTML     string  `json:"descHtml"`
	Verified bool    `json:"verified"`
	ProofsID *string `json:"proofsId"`
	ReportID string  `json:"reportId"`
}

func rendered(e events.Entry) string { return newMarkdown().render(e.Reason) }

func public(es []events.Entry) []twinEntry {
	out := []twinEntry{}
	for _, e := range es {
		p := twinEntry{e.EntryID, e.Name, e.ChatID, rendered(e), e.Verified, nil, e.ReportID}
		if e.Proofs.ID != "" {
			p.ProofsID = &e.Proofs.ID
		}
		out = append(out, p)
	}
	return out
}

func marshal(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func has(text, needle string) bool { return strings.Contains(Fold(text), Fold(needle)) }

func (w *twin) list(q ListQuery) string {
	var match []events.Entry
	for _, e := range w.entries {
		if e.List == q.List && w.asked(e, q) && w.filtered(e, q) {
			match = append(match, e)
		}
	}
	w.order(match, q.Sort)
	page := match[min(q.Skip, len(match)):]
	page = page[:min(q.Limit, len(page))]
	return marshal(struct {
		Data    []twinEntry `json:"data"`
		Total   int         `json:"total"`
		HasMore bool        `json:"hasMore"`
	}{public(page), len(match), q.Skip+len(page) < len(match)})
}

func (w *twin) asked(e events.Entry, q ListQuery) bool {
	if q.ID != "" {
		return e.ChatID == q.ID
	}
	return q.Search == "" || has(e.Name, q.Search) || has(e.ChatID, q.Search) ||
		has(visibleText(rendered(e)), q.Search)
}

func (w *twin) filtered(e events.Entry, q ListQuery) bool {
	if e.List == events.Legit {
		q.Status = StatusVerified
	}
	if q.Status == StatusVerified && !e.Verified || q.Status == StatusRisk && e.Verified {
		return false
	}
	return q.Proofs == ProofsAll || q.Proofs == ProofsWith && e.Proofs.ID != "" || q.Proofs == ProofsPrivate && e.Proofs.Private
}

func (w *twin) order(es []events.Entry, s Sort) {
	polish := collate.New(language.Polish, collate.IgnoreCase)
	slices.SortFunc(es, func(a, b events.Entry) int {
		var c int
		switch s {
		case Newest, Oldest:
			c = a.ReportedAt.Compare(b.ReportedAt)
		case Popular, PopularAsc:
			c = int(w.views[a.Subject()] - w.views[b.Subject()])
		default:
			c = polish.CompareString(a.Name, b.Name)
		}
		if c == 0 {
			c = strings.Compare(a.EntryID, b.EntryID)
		}
		if s == Newest || s == Popular || s == ZA {
			return -c
		}
		return c
	})
}

func (w *twin) check(q CheckQuery) string {
	type group struct {
		Kind    string      `json:"kind"`
		Entries []twinEntry `json:"entries"`
	}
	groups := []group{}
	for _, l := range events.Lists() {
		match := w.ranked(l, q)
		if len(match) > 0 && (l != events.Legit || len(groups) == 0) {
			groups = append(groups, group{string(l), public(match)})
		}
	}
	answer := struct {
		Results []group `json:"results"`
		Similar []group `json:"similar,omitempty"`
	}{Results: groups}
	for _, l := range []events.List{events.Scammers, events.Servers} {
		if match := w.similar(l, q); len(match) > 0 {
			answer.Similar = append(answer.Similar, group{string(l), public(match)})
		}
	}
	return marshal(answer)
}

func (w *twin) ranked(l events.List, q CheckQuery) []events.Entry {
	ranks := map[int][]events.Entry{}
	for _, e := range w.entries {
		if e.List != l || l == events.Legit && !e.Verified {
			continue
		}
		if rank := twinRank(e, q); rank > 0 {
			ranks[rank] = append(ranks[rank], e)
		}
	}
	var out []events.Entry
	for _, rank := range slices.Sorted(maps.Keys(ranks)) {
		w.order(ranks[rank], Newest)
		out = append(out, ranks[rank]...)
	}
	return out[:min(20, len(out))]
}

func twinRank(e events.Entry, q CheckQuery) int {
	name, chat, needle := Fold(e.Name), Fold(e.ChatID), Fold(q.Search)
	switch {
	case q.ID != "":
		if e.ChatID == q.ID {
			return 1
		}
		return 0
	case chat == needle:
		return 1
	case name == needle:
		return 2
	case strings.HasPrefix(name, needle):
		return 3
	case strings.Contains(name, needle):
		return 4
	case strings.Contains(chat, needle):
		return 5
	}
	return 0
}
