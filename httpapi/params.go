package httpapi

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/bounds"
	"example.org/registry/readmodel"
)

// parseList reads the query string of a list. It is a pure function.
func parseList(list events.List, raw string) (readmodel.ListQuery, error) {
	q := readmodel.ListQuery{List: list, Limit: bounds.DefaultLimit}
	if raw == "" {
		return q, nil
	}

	p := readParams(raw)
	q.Search = p.readText("search", bounds.MaxSearch)
	q.ID = p.readID("id")
	q.Sort = readmodel.Sort(p.readChoice("sort", bounds.Sorts()))
	q.Status = readmodel.Status(p.readChoice("status", bounds.Statuses()))
	q.Proofs = readmodel.Proofs(p.readChoice("proofs", bounds.Proofs()))
	q.Skip = p.readNumber("skip", 0, bounds.MaxSkip, 0)
	q.Limit = p.readNumber("limit", 1, bounds.MaxLimit, bounds.DefaultLimit)
	return q, p.err
}

// parseCheck reads the query string of a check (httpapi/CONTRACT.md#check). Its result has either an ID or a Search: the parameter
// id takes precedence, and a search that refers to a chat id becomes an ID. It is a pure function.
func parseCheck(raw string) (readmodel.CheckQuery, error) {
	p := readParams(raw)
	id := p.readID("id")
	search, searchIsID := p.readPasted("search")
	if p.err != nil {
		return readmodel.CheckQuery{}, p.err
	}

	if id == "" && searchIsID {
		id = search
	}
	if id != "" {
		return readmodel.CheckQuery{ID: id}, nil
	}
	if search == "" {
		return readmodel.CheckQuery{}, missing("search")
	}
	return readmodel.CheckQuery{Search: search}, nil
}

// parsePerson reads the query string of the person check on the site. Both fields may be empty, and each may be as long as
// a query string. It is a pure function.
func parsePerson(raw string) (person, error) {
	p := readParams(raw)
	asked := person{id: p.readTrimmedTo("id", bounds.MaxQuery), text: p.readTrimmedTo("search", bounds.MaxQuery)}
	return asked, p.err
}

// person is what a visitor has typed into the form of the person check: a text, and the field for an id.
type person struct{ text, id string }

func (p person) isEmpty() bool { return p.text == "" && p.id == "" }

// checkQuery returns the query of the API's check for the same person. It asks for p.id if that is a chat id, else for p.text, else
// for p.id as a text. If the API would refuse the text, the query is empty.
func (p person) checkQuery() readmodel.CheckQuery {
	if id, ok := events.ReadChatID(p.id); ok {
		return readmodel.CheckQuery{ID: id}
	}
	asked := url.Values{"search": {cmp.Or(p.text, p.id)}}
	q, _ := parseCheck(asked.Encode()) // empty if there is an error
	return q
}

// params reads the parameters of one request, and keeps the error of the first one that is wrong. A parameter that is never read is
// ignored.
type params struct {
	values url.Values
	err    error
}

// checkSyntax returns the error of readParams, for a request whose parameters are all ignored.
func checkSyntax(raw string) error { return readParams(raw).err }

// readParams parses a raw query string. If it is longer than bounds.MaxQuery, or has a bad escape or a semicolon, the error is
// the invalid parameter "query", and every parameter reads as absent.
func readParams(raw string) params {
	if len(raw) > bounds.MaxQuery {
		return params{err: invalid("query")}
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return params{err: invalid("query")}
	}
	return params{values: values}
}

// readTrimmed returns a parameter without surrounding white space, or "" if it is absent or wrong.
func (p *params) readTrimmed(name string) string { return p.readTrimmedTo(name, bounds.MaxValue) }

// readTrimmedTo is readTrimmed for a value of at most limit code points, surrounding white space included.
func (p *params) readTrimmedTo(name string, limit int) string {
	given := p.values[name]
	if len(given) == 0 || p.err != nil {
		return ""
	}

	text := given[0]
	isCleanText := utf8.ValidString(text) && !strings.Contains(text, "\x00")
	if len(given) > 1 || !isCleanText || bounds.Longer(text, limit) {
		p.refuse(name)
		return ""
	}
	return strings.TrimSpace(text)
}

// readText returns a parameter of at most limit code points after trimming.
func (p *params) readText(name string, limit int) string {
	s := p.readTrimmed(name)
	if bounds.Longer(s, limit) {
		p.refuse(name)
	}
	return s
}

// readID returns the chat id that a parameter contains or refers to (events.ReadChatID), or "" if it is absent.
func (p *params) readID(name string) string {
	s := p.readTrimmed(name)
	if s == "" {
		return ""
	}
	id, ok := events.ReadChatID(s)
	if !ok {
		p.refuse(name)
	}
	return id
}

// readPasted returns a parameter of a check: a text to search for or, if the text refers to a chat id, that id. It refuses the
// three texts that JavaScript makes of a missing value; any other word may be a name.
func (p *params) readPasted(name string) (text string, isID bool) {
	text = p.readTrimmed(name)
	if _, refers := events.ReferredChatID(text); refers {
		return p.readID(name), true
	}
	isLost := text == "undefined" || text == "null" || text == "[object Object]"
	if isLost || bounds.Longer(text, bounds.MaxSearch) {
		p.refuse(name)
	}
	return text, false
}

// readNumber returns a parameter of at most six digits, from low to high, or fallback if it is absent.
func (p *params) readNumber(name string, low, high, fallback int) int {
	s := p.readTrimmed(name)
	if s == "" {
		return fallback
	}
	n, ok := parseDigits(s, 6)
	if !ok || n < uint64(low) || n > uint64(high) {
		p.refuse(name)
	}
	return int(n)
}

// readSequence returns a parameter that is a stream sequence of at most 19 digits, and whether it is present.
func (p *params) readSequence(name string) (n uint64, given bool) {
	s := p.readTrimmed(name)
	if s == "" {
		return 0, false
	}
	n, ok := parseDigits(s, 19)
	if !ok {
		p.refuse(name)
	}
	return n, true
}

// readChoice returns the index of a parameter in words. An absent parameter is the first word.
func (p *params) readChoice(name string, words []string) int {
	s := p.readTrimmed(name)
	if s == "" {
		return 0
	}
	index := slices.Index(words, s)
	if index < 0 {
		p.refuse(name)
		return 0
	}
	return index
}

func (p *params) refuse(name string) {
	if p.err == nil {
		p.err = invalid(name)
	}
}

// parseDigits reads a number of at most limit digits, without a sign.
func parseDigits(s string, limit int) (n uint64, ok bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && len(s) <= limit
}
