package events

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// envelope takes up an event while the JSON is read, in one pass when type comes before
// data, which is how Encode writes them.
type envelope struct {
	payload []byte // what is being read
	kind    kind   // of the type; unknownKind until that is known
	later   jsontext.Value
	result  Event
}

// UnmarshalJSONFrom reads the CloudEvents attributes; the library calls it with one of its
// pooled decoders.
func (e *envelope) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	r := reader{dec: dec}
	names := []string{"specversion", "id", "source", "type", "data", "time", "datacontenttype"}
	return r.object("event", names, 5, func(i int) error {
		switch i {
		case 0:
			return r.version()
		case 1:
			return r.text("id", &e.result.ID)
		case 2:
			return r.text("source", &e.result.Source)
		case 3:
			return e.readType(r)
		case 4:
			return e.readData(r)
		case 5:
			return e.readTime(r)
		}
		return readContentType(r)
	})
}

// version reads the only version of CloudEvents there is.
func (r reader) version() error {
	b, err := r.bytes("specversion")
	if err != nil {
		return err
	}
	if string(b) != "1.0" {
		return wrong("specversion", "must be 1.0")
	}
	return nil
}

func (e *envelope) readType(r reader) error {
	b, err := r.bytes("type")
	if err != nil {
		return err
	}
	for _, t := range Types() { // the constants: no copy is made
		if string(b) == string(t) {
			e.result.Type, e.kind = t, dataKind(t)
			return nil
		}
	}
	return wrong("type", "unknown type "+quote(string(b)))
}

// readData reads data now, or keeps it until the type is known.
func (e *envelope) readData(r reader) error {
	if e.kind != unknownKind {
		return r.data(e.kind, &e.result.Data)
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	// The decoder only lends v, but says where in our payload it is.
	end := r.dec.InputOffset()
	e.later = e.payload[end-int64(len(v)) : end]
	return nil
}

func (e *envelope) readTime(r reader) error {
	b, err := r.optional("time")
	if err != nil || b == nil {
		return err
	}
	return parseTime("time", b, &e.result.Time)
}

func readContentType(r reader) error {
	b, err := r.optional("datacontenttype")
	if err != nil || b == nil || string(b) == "application/json" {
		return err
	}
	if bad := checkContentType(string(b)); bad != nil {
		return bad
	}
	return nil
}

// event is the whole, once everything has been read.
func (e *envelope) event() (Event, *Error) {
	if e.result.Data == nil {
		d, err := decodeDataAt(1, e.kind, e.later)
		if err != nil {
			return Event{}, err
		}
		e.result.Data = d
	}
	return e.result, nil
}

// body is data read by itself.
type body struct {
	base int
	kind kind
	data Data
}

// UnmarshalJSONFrom reads the data of body.kind.
func (b *body) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return reader{dec: dec, base: b.base}.data(b.kind, &b.data)
}

func decodeData(k kind, raw []byte) (Data, *Error) {
	if hasEscapedNUL(raw) {
		return nil, wrong("data", "contains NUL")
	}
	return decodeDataAt(0, k, raw)
}

// decodeDataAt reads data that has base levels around it.
func decodeDataAt(base int, k kind, raw []byte) (Data, *Error) {
	b := body{base: base, kind: k}
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, explain(err, raw)
	}
	if b.data == nil {
		return nil, explain(errors.ErrUnsupported, raw)
	}
	return b.data, nil
}
