package events

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads one event: CloudEvents 1.0, JSON structured mode, at most 256 KiB, read as
// strictly as the API contract, events, asks. The error is an *Error. The event shares no
// memory with the payload. Any number of goroutines may decode.
func Decode(payload []byte) (Event, error) {
	e, err := decode(payload)
	if err != nil {
		return Event{}, err
	}
	return e, nil
}

// DecodeMessage is Decode for a message of the stream: it also refuses a subject that is
// unknown or is not that of the data.
func DecodeMessage(subject string, payload []byte) (Event, error) {
	says, err := ParseSubject(subject)
	if err != nil {
		return Event{}, err
	}
	e, bad := decode(payload)
	if bad != nil {
		return Event{}, bad
	}
	if data := subjectOf(e.Data); data != says {
		return Event{}, wrong("subject", "subject says "+subject+", data says "+data.String())
	}
	return e, nil
}

// DecodeData reads what CanonicalData wrote for an event of type t, with every check of
// Decode. The error is an *Error.
func DecodeData(t Type, b []byte) (Data, error) {
	k := dataKind(t)
	if k == unknownKind {
		return nil, wrong("type", "unknown type "+quote(string(t)))
	}
	d, bad := decodeData(k, b)
	if bad == nil {
		bad = checkData(d)
	}
	if bad != nil {
		return nil, bad
	}
	return d, nil
}

func decode(payload []byte) (Event, *Error) {
	if len(payload) > MaxPayload {
		return Event{}, wrong("event", "longer than 262144 bytes")
	}
	if hasEscapedNUL(payload) {
		return Event{}, wrong("event", "contains NUL")
	}
	var env envelope
	env.payload = payload
	if err := json.Unmarshal(payload, &env); err != nil {
		return Event{}, explain(err, payload)
	}
	e, err := env.event()
	if err != nil {
		return Event{}, err
	}
	if err := validate(&e); err != nil {
		return Event{}, err
	}
	return e, nil
}

// hasEscapedNUL finds the escape \u0000 in JSON text. An odd run of backslashes ends in an
// escape; an even one is only backslashes. Raw NUL is a syntax error already.
func hasEscapedNUL(b []byte) bool {
	for off := 0; ; {
		i := bytes.Index(b[off:], []byte(`\u0000`))
		if i < 0 {
			return false
		}
		first := off + i
		for first > 0 && b[first-1] == '\\' {
			first--
		}
		if (off+i-first)%2 == 0 {
			return true
		}
		off += i + 1
	}
}

// explain turns an error of the JSON reader into one of ours, which repeats no input.
func explain(err error, payload []byte) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return wrong("event", "an object has the same member twice")
	case !utf8.Valid(payload):
		return wrong("event", "invalid UTF-8")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return wrong("event", "not JSON: ends too early")
	}
	return wrong("event", "not JSON that RFC 8259 allows"+at(err))
}

// at says where a syntax error is, counted from 0.
func at(err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return ""
	}
	return ", at byte " + strconv.FormatInt(syntax.ByteOffset, 10)
}
