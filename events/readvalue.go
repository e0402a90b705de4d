package events

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

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
