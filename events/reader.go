package events

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// reader walks one JSON value token by token. Being strict about syntax, duplicate members
// and UTF-8 is the library's work; here is what the contract adds.
type reader struct {
	dec  *jsontext.Decoder
	base int // levels around the value that dec began with
}

// object reads an object. member is called with the index in names of each member that is
// there, and must read its value; unknown members are skipped. The first required names
// must all be there.
func (r reader) object(field string, names []string, required int, member func(i int) error) error {
	if k := r.dec.PeekKind(); k != jsontext.KindBeginObject && k != jsontext.KindInvalid {
		return wrong(field, "must be an object")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	var seen uint16
	for r.dec.PeekKind() != jsontext.KindEndObject {
		i, err := r.name(names)
		if err != nil {
			return err
		}
		if i < 0 {
			err = r.skip()
		} else {
			seen |= 1 << i
			err = member(i)
		}
		if err != nil {
			return err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for i := range required {
		if seen&(1<<i) == 0 {
			return wrong(within(field, names[i]), "missing")
		}
	}
	return nil
}

// within is the path of a member. The envelope's own members stand alone.
func within(field, name string) string {
	if field == "event" {
		return name
	}
	return field + "." + name
}

// name reads a member's name and finds it in names; -1 when it is not there.
func (r reader) name(names []string) (int, error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return 0, err
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		if text, err = jsontext.AppendUnquote(nil, raw); err != nil {
			return 0, err
		}
	}
	for i, n := range names {
		if string(text) == n {
			return i, nil
		}
	}
	return -1, nil
}

// skip passes over a value, however deep it may claim to be.
func (r reader) skip() error {
	if k := r.dec.PeekKind(); k != jsontext.KindBeginObject && k != jsontext.KindBeginArray {
		return r.dec.SkipValue()
	}
	start := r.dec.StackDepth()
	for {
		if _, err := r.dec.ReadToken(); err != nil {
			return err
		}
		depth := r.dec.StackDepth()
		if r.base+depth > maxDepth {
			return wrong("event", "nested deeper than "+strconv.Itoa(maxDepth)+" levels")
		}
		if depth == start {
			return nil
		}
	}
}

// bytes reads a string; null is not one. The bytes are lent until the next read.
func (r reader) bytes(field string) ([]byte, error) {
	if k := r.dec.PeekKind(); k != jsontext.KindString && k != jsontext.KindInvalid {
		return nil, wrong(field, "must be a string")
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote(nil, raw)
}

// text reads a string and keeps it.
func (r reader) text(field string, to *string) error {
	b, err := r.bytes(field)
	*to = string(b)
	return err
}

// list reads the name of a list, without a copy for those that exist.
func (r reader) list(to *List) error {
	b, err := r.bytes("data.list")
	if err != nil {
		return err
	}
	for _, l := range Lists() {
		if string(b) == string(l) {
			*to = l
			return nil
		}
	}
	*to = List(b)
	return nil
}

// optional reads a string, lent as by bytes, or null, which CloudEvents takes for an absent
// attribute: then the bytes are nil.
func (r reader) optional(field string) ([]byte, error) {
	if r.dec.PeekKind() == jsontext.KindNull {
		return nil, r.dec.SkipValue()
	}
	return r.bytes(field)
}

// flag reads true or false.
func (r reader) flag(field string, to *bool) error {
	switch r.dec.PeekKind() {
	case jsontext.KindTrue:
		*to = true
	case jsontext.KindFalse, jsontext.KindInvalid:
	default:
		return wrong(field, "must be true or false")
	}
	return r.dec.SkipValue()
}

// integer reads a plain whole number: no sign, fraction or exponent, at most 2⁵³−1.
func (r reader) integer(field string, to *int64) error {
	if k := r.dec.PeekKind(); k != jsontext.KindNumber && k != jsontext.KindInvalid {
		return wrong(field, "must be a number")
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	for _, c := range raw {
		if !isDigit(c) || *to > maxInteger {
			return wrong(field, "must be a plain whole number from 0 to 9007199254740991")
		}
		*to = *to*10 + int64(c-'0')
	}
	return nil
}
