package httpapi

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// What a query string may be (API contract, parameters).
const (
	maxQuery = 4096 // bytes, as sent
	maxValue = 300  // code points of one value, decoded
)

// value is one known parameter of a query string, decoded.
type value struct {
	text  string // of its first mention
	given bool
	again bool // given twice or more
}

// scanQuery splits a raw query string by the rules of url.ParseQuery and fills values[i] with
// the parameter names[i]. Others are ignored, but must be well formed. Its only error is the
// parameter "query": longer than maxQuery, a bad escape, or a semicolon. It is a loop of its own
// because url.ParseQuery makes a map and a slice for each name, once a request.
func scanQuery(raw string, names []string, values []value) error {
	if len(raw) > maxQuery {
		return invalid("query")
	}
	for raw != "" {
		var pair string
		if pair, raw, _ = strings.Cut(raw, "&"); pair == "" {
			continue
		}
		name, text, err := unescapePair(pair)
		if err != nil {
			return err
		}
		for i := range names {
			if names[i] == name {
				values[i].add(text)
			}
		}
	}
	return nil
}

func unescapePair(pair string) (name, text string, err error) {
	if strings.Contains(pair, ";") {
		return "", "", invalid("query")
	}
	rawName, rawText, _ := strings.Cut(pair, "=")
	if name, err = url.QueryUnescape(rawName); err != nil {
		return "", "", invalid("query")
	}
	if text, err = url.QueryUnescape(rawText); err != nil {
		return "", "", invalid("query")
	}
	return name, text, nil
}

func (v *value) add(text string) {
	if v.given {
		v.again = true
		return
	}
	v.text, v.given = text, true
}

// params reads the parameters of one request in turn and keeps the first error, so that the
// order of the calls is the order of the contract's table.
type params struct {
	names  []string
	values []value
	err    error
}

// raw is parameter i without surrounding white space; "" when it is absent, empty or wrong.
func (p *params) raw(i int) string {
	v := p.values[i]
	if !v.given || p.err != nil {
		return ""
	}
	if v.again || !utf8.ValidString(v.text) || strings.IndexByte(v.text, 0) >= 0 || longer(v.text, maxValue) {
		p.refuse(i)
		return ""
	}
	return strings.TrimSpace(v.text)
}

// text is parameter i, of at most limit code points.
func (p *params) text(i, limit int) string {
	s := p.raw(i)
	if longer(s, limit) {
		p.refuse(i)
	}
	return s
}

// number is parameter i, from low to high; absent it is fallback.
func (p *params) number(i, low, high, fallback int) int {
	s := p.raw(i)
	if s == "" {
		return fallback
	}
	n, ok := smallNumber(s)
	if !ok || n < low || n > high {
		p.refuse(i)
	}
	return n
}

// choice is parameter i as parse understands it; absent it is the zero value.
func choice[T any](p *params, i int, parse func(string) (T, bool)) (chosen T) {
	s := p.raw(i)
	if s == "" {
		return chosen
	}
	chosen, ok := parse(s)
	if !ok {
		p.refuse(i)
	}
	return chosen
}

func (p *params) refuse(i int) {
	if p.err == nil {
		p.err = invalid(p.names[i])
	}
}

// smallNumber reads [0-9]{1,6}.
func smallNumber(s string) (n int, ok bool) {
	if len(s) > 6 || !digits(s) {
		return 0, false
	}
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// digits says whether s is one or more of 0 to 9.
func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// longer says whether s has more than limit code points.
func longer(s string, limit int) bool {
	return len(s) > limit && utf8.RuneCountInString(s) > limit
}
