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
