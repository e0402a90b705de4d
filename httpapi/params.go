package httpapi

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/httpapi/paste"
	"example.org/registry/readmodel"
)

// The parameters of a list, in the order in which they are checked.
const (
	listSearch = iota
	listID
	listSort
	listStatus
	listProofs
	listSkip
	listLimit
	numListParams
)

func listParams() [numListParams]string {
	return [...]string{"search", "id", "sort", "status", "proofs", "skip", "limit"}
}

// parseList reads the query string of a list. It is a pure function.
func parseList(list events.List, raw string) (readmodel.ListQuery, error) {
	q := readmodel.ListQuery{List: list, Limit: bounds.DefaultLimit}
	if raw == "" {
		return q, nil
	}
	names, values := listParams(), [numListParams]value{}
	p := readParams(raw, names[:], values[:])
	q.Search = p.text(listSearch, bounds.MaxSearch)
	q.ID = p.id(listID)
	q.Sort = readmodel.Sort(p.choice(listSort, bounds.Sorts()))
	q.Status = readmodel.Status(p.choice(listStatus, bounds.Statuses()))
	q.Proofs = readmodel.Proofs(p.choice(listProofs, bounds.Proofs()))
	q.Skip = p.number(listSkip, 0, bounds.MaxSkip, 0)
	q.Limit = p.number(listLimit, 1, bounds.MaxLimit, bounds.DefaultLimit)
	return q, p.err
}

// The parameters of a check, in the order in which they are checked.
const (
	checkID = iota
	checkSearch
	numCheckParams
)

// parseCheck reads the query string of a check: id or search, or either of them as pasted
// (httpapi/CONTRACT.md#check). It is a pure function. Its result has either ID or Search.
func parseCheck(raw string) (readmodel.CheckQuery, error) {
	names, values := [numCheckParams]string{"id", "search"}, [numCheckParams]value{}
	p := readParams(raw, names[:], values[:])
	id := p.id(checkID)
	search, isID := p.pasted(checkSearch)
	switch {
	case p.err != nil:
		return readmodel.CheckQuery{}, p.err
	case id != "":
		return readmodel.CheckQuery{ID: id}, nil
	case search == "":
		return readmodel.CheckQuery{}, missing("search")
	case isID:
		return readmodel.CheckQuery{ID: search}, nil
	}
	return readmodel.CheckQuery{Search: search}, nil
}

// parsePerson reads the query string of the person check: the parameters of a check, with search as
// pasted (httpapi/CONTRACT.md#pastes), and with an id next to it that belongs to the same text.
// Both are read as people wrote them. Without both, the query is empty. It is a pure function.
func parsePerson(raw string) (person, error) {
	names, values := [numCheckParams]string{"id", "search"}, [numCheckParams]value{}
	ps := readParams(raw, names[:], values[:])
	asked := person{id: ps.trimmed(checkID), text: ps.trimmed(checkSearch)}
	return asked, ps.err
}

// person is the query of a person check: a text, and the content of the field for an id.
type person struct{ text, id string }

func (p person) empty() bool { return p.text == "" && p.id == "" }

// isSearch reports whether the check takes a turn among searches: all but a single id do.
func (p person) isSearch() bool {
	return p.text != "" && p.id != "" || !paste.SingleID(p.text+p.id)
}

// parseDonation reads the donation's id from a query string. It is a pure function.
func parseDonation(raw string) (string, error) {
	names, values := [1]string{"id"}, [1]value{}
	p := readParams(raw, names[:], values[:])
	id := p.text(0, bounds.MaxID)
	if p.err == nil && id == "" {
		return "", missing("id")
	}
	return id, p.err
}

// value is one known parameter of a query string, decoded.
type value struct {
	text     string // of its first occurrence
	given    bool
	repeated bool
}

// scanQuery parses a raw query string and sets values[i] to the parameter names[i]. It ignores
// others, but they must be well formed. Its only error is the invalid parameter "query": longer
// than bounds.MaxQuery, a bad escape, or a semicolon.
func scanQuery(raw string, names []string, values []value) error {
	if len(raw) > bounds.MaxQuery {
		return invalid("query")
	}
	all, err := url.ParseQuery(raw)
	if err != nil {
		return invalid("query")
	}
	for i, name := range names {
		if given := all[name]; len(given) > 0 {
			values[i] = value{text: given[0], given: true, repeated: len(given) > 1}
		}
	}
	return nil
}

// params reads the parameters of one request in turn, and retains the first error. So the order of
// the calls is the order of checking.
type params struct {
	names  []string
	values []value
	err    error
}

// readParams reads the parameters of a raw query string into values. If scanQuery refuses it, that
// is the first error, and every parameter reads as absent.
func readParams(raw string, names []string, values []value) params {
	return params{names: names, values: values, err: scanQuery(raw, names, values)}
}

// trimmed returns parameter i without surrounding white space, or "" if it is absent or wrong.
func (p *params) trimmed(i int) string { return p.trimmedTo(i, bounds.MaxValue) }

// trimmedTo is trimmed for a value of at most limit code points before trimming.
func (p *params) trimmedTo(i, limit int) string {
	v := p.values[i]
	if !v.given || p.err != nil {
		return ""
	}
	if v.repeated || !utf8.ValidString(v.text) || strings.IndexByte(v.text, 0) >= 0 || longer(v.text, limit) {
		p.refuse(i)
		return ""
	}
	return strings.TrimSpace(v.text)
}

// text returns parameter i, which has at most limit code points.
func (p *params) text(i, limit int) string {
	s := p.trimmed(i)
	if longer(s, limit) {
		p.refuse(i)
	}
	return s
}

// id returns the chat id that parameter i asks for (events.ReadChatID), or "" if it is absent.
func (p *params) id(i int) string {
	s := p.trimmed(i)
	if s == "" {
		return ""
	}
	id, ok := events.ReadChatID(s)
	if !ok {
		p.refuse(i)
	}
	return id
}

// pasted returns parameter i of a check: a text to search for, or the chat id to which it refers.
// Three texts are what programs make of a missing value; other words may be names.
func (p *params) pasted(i int) (text string, isID bool) {
	text = p.trimmed(i)
	if _, isID = events.ReferredChatID(text); isID {
		return p.id(i), true
	}
	if longer(text, bounds.MaxSearch) || text == "undefined" || text == "null" || text == "[object Object]" {
		p.refuse(i)
	}
	return text, false
}

// number returns parameter i, a number from low to high, or fallback if it is absent.
func (p *params) number(i, low, high, fallback int) int {
	s := p.trimmed(i)
	if s == "" {
		return fallback
	}
	n, ok := smallNumber(s)
	if !ok || n < low || n > high {
		p.refuse(i)
	}
	return n
}

// choice returns the index of parameter i among the words, or 0 if it is absent.
func (p *params) choice(i int, words []string) int {
	s := p.trimmed(i)
	if s == "" {
		return 0
	}
	chosen := slices.Index(words, s)
	if chosen < 0 {
		p.refuse(i)
	}
	return max(chosen, 0)
}

func (p *params) refuse(i int) {
	if p.err == nil {
		p.err = invalid(p.names[i])
	}
}

// smallNumber reads [0-9]{1,6}.
func smallNumber(s string) (n int, ok bool) {
	if len(s) > 6 || !paste.Digits(s) {
		return 0, false
	}
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// longer reports whether s has more than limit code points.
func longer(s string, limit int) bool {
	return len(s) > limit && utf8.RuneCountInString(s) > limit
}
