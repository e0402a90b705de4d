package events

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads one event, as strictly as events/CONTRACT.md#json asks. The error is an *Error. The
// event shares no memory with the payload. Any number of goroutines may decode.
func Decode(payload []byte) (Event, error) {
	e, err := decode(payload)
	if err != nil {
		return Event{}, err
	}
	return e, nil
}

// DecodeMessage is Decode for a message of the stream: it also rejects a subject that is unknown or
// is not the data's.
func DecodeMessage(subject string, payload []byte) (Event, error) {
	of, err := ParseSubject(subject)
	if err != nil {
		return Event{}, err
	}
	e, bad := decode(payload)
	if bad != nil {
		return Event{}, bad
	}
	if data := e.Data.Subject(); data != of {
		return Event{}, &Error{"subject", "subject says " + subject + ", data says " + data.String(), "not the one of the data"}
	}
	return e, nil
}

// DecodeData reads what AppendData wrote for an event of type t, with every check of Decode. A removal
// lacks its time. The error is an *Error.
func DecodeData(t Type, b []byte) (Data, error) {
	if !isType(t) {
		return nil, wrongWords("type", "unknown type", quote(string(t)))
	}
	if hasEscapedNUL(b) {
		return nil, wrong("data", "contains NUL")
	}
	d, bad := decodeData(t, b, 0)
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
		return Event{}, wrong("event", "longer than "+strconv.Itoa(MaxPayload)+" bytes")
	}
	if hasEscapedNUL(payload) {
		return Event{}, wrong("event", "contains NUL")
	}
	env := envelope{payload: payload}
	if err := json.Unmarshal(payload, &env); err != nil {
		return Event{}, explain(err, payload)
	}
	e := env.event
	if e.Data == nil {
		var err *Error
		if e.Data, err = decodeData(e.Type, env.later, 1); err != nil {
			return Event{}, err
		}
	}
	if err := validate(&e); err != nil {
		return Event{}, err
	}
	return e, nil
}

// hasEscapedNUL finds the escape \u0000 in JSON text. An odd run of backslashes ends in an escape;
// an even one is only backslashes. Raw NUL is a syntax error already.
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

// explain turns an error of the JSON reader into an *Error that repeats no input.
func explain(err error, payload []byte) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return wrong("event", "an object has the same member twice")
	case !utf8.Valid(payload):
		return wrong("event", "invalid UTF-8")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return wrong("event", "not JSON: ends too early")
	case errors.As(err, &syntax):
		return wrong("event", "not JSON that RFC 8259 allows, at byte "+strconv.FormatInt(syntax.ByteOffset, 10)) // from 0
	}
	return wrong("event", "not JSON that RFC 8259 allows")
}

// envelope is an event while its JSON is read: in one pass when type comes before data, which is
// how Encode writes them.
type envelope struct {
	payload []byte         // what is read
	event   Event          // its Type is empty until it is known
	later   jsontext.Value // data that came before type; part of payload
}

// UnmarshalJSONFrom reads the CloudEvents attributes with one of the library's pooled decoders.
func (e *envelope) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return readObject(reader{dec: dec}, "event", []member[envelope]{
		{"specversion", func(r reader, _ *envelope) error { return r.version() }, false},
		{"id", func(r reader, e *envelope) error { return r.text("id", &e.event.ID) }, false},
		{"source", func(r reader, e *envelope) error { return r.text("source", &e.event.Source) }, false},
		{"type", func(r reader, e *envelope) error { return r.eventType(&e.event.Type) }, false},
		{"data", func(r reader, e *envelope) error { return e.readData(r) }, false},
		{"time", func(r reader, e *envelope) error { return r.optionalTime("time", &e.event.Time) }, true},
		{"datacontenttype", func(r reader, _ *envelope) error { return r.contentType() }, true},
	}, e)
}

// readData reads data now, or keeps it until the type is known.
func (e *envelope) readData(r reader) error {
	if e.event.Type != "" {
		return r.data(e.event.Type, &e.event.Data)
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	// The decoder only lends v, but tells where in payload it is.
	end := r.dec.InputOffset()
	e.later = e.payload[end-int64(len(v)) : end]
	return nil
}

// decodeData reads the data of an event of type t by itself. around is the number of levels that
// enclosed it.
func decodeData(t Type, raw []byte, around int) (Data, *Error) {
	b := body{t: t, around: around}
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, explain(err, raw)
	}
	if b.data == nil { // JSON null, for which the library does not ask body
		return nil, wrong("data", "must be an object")
	}
	return b.data, nil
}

// body is data read by itself.
type body struct {
	t      Type
	around int
	data   Data
}

// UnmarshalJSONFrom reads the data of an event of type b.t.
func (b *body) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return reader{dec: dec, around: b.around}.data(b.t, &b.data)
}

// data reads the data of an event of type t. Bounds are checked afterwards, by checkData.
func (r reader) data(t Type, to *Data) error {
	switch t {
	case TypeListed, TypeVerified, TypeAmended:
		return r.entry(to)
	case TypeDelisted:
		return r.delisting(to)
	case TypeViewsCounted:
		return r.views(to)
	case TypeDonationUpdated:
		return r.donation(to)
	case TypeDonationRemoved:
		return r.removal(to)
	}
	return wrong("type", "unknown")
}

func readData[T Data](r reader, to *Data, members []member[T]) error {
	var d T
	err := readObject(r, "data", members, &d)
	*to = d
	return err
}

func (r reader) entry(to *Data) error {
	return readData(r, to, []member[Entry]{
		{"list", func(r reader, e *Entry) error { return r.list(&e.List) }, false},
		{"entryId", func(r reader, e *Entry) error { return r.text("data.entryId", &e.EntryID) }, false},
		{"chatId", func(r reader, e *Entry) error { return r.text("data.chatId", &e.ChatID) }, false},
		{"name", func(r reader, e *Entry) error { return r.text("data.name", &e.Name) }, false},
		{"reason", func(r reader, e *Entry) error { return r.text("data.reason", &e.Reason) }, false},
		{"verified", func(r reader, e *Entry) error { return r.flag("data.verified", &e.Verified) }, false},
		{"proofs", func(r reader, e *Entry) error { return r.proofs(&e.Proofs) }, false},
		{"reportId", func(r reader, e *Entry) error { return r.text("data.reportId", &e.ReportID) }, false},
		{"reportedAt", func(r reader, e *Entry) error { return r.time("data.reportedAt", &e.ReportedAt) }, false},
		{"revision", func(r reader, e *Entry) error { return r.revision(&e.Revision) }, false},
	})
}

func (r reader) proofs(p *Proofs) error {
	return readObject(r, "data.proofs", []member[Proofs]{
		{"id", func(r reader, p *Proofs) error { return r.proofsID(&p.ID) }, false},
		{"private", func(r reader, p *Proofs) error { return r.flag("data.proofs.private", &p.Private) }, false},
	}, p)
}

// proofsID reads null as the empty string, which is therefore no id.
func (r reader) proofsID(to *string) error {
	if r.dec.PeekKind() == jsontext.KindNull {
		return r.dec.SkipValue()
	}
	if err := r.text("data.proofs.id", to); err != nil {
		return err
	}
	if *to == "" {
		return checkID("proofs.id", "")
	}
	return nil
}

func (r reader) delisting(to *Data) error {
	return readData(r, to, []member[Delisting]{
		{"list", func(r reader, d *Delisting) error { return r.list(&d.List) }, false},
		{"entryId", func(r reader, d *Delisting) error { return r.text("data.entryId", &d.EntryID) }, false},
		{"revision", func(r reader, d *Delisting) error { return r.revision(&d.Revision) }, false},
	})
}

func (r reader) views(to *Data) error {
	return readData(r, to, []member[Views]{
		{"list", func(r reader, v *Views) error { return r.list(&v.List) }, false},
		{"entryId", func(r reader, v *Views) error { return r.text("data.entryId", &v.EntryID) }, false},
		{"revision", func(r reader, v *Views) error { return r.revision(&v.Revision) }, false},
		{"views", func(r reader, v *Views) error { return r.integer("data.views", &v.Views) }, false},
	})
}

func (r reader) donation(to *Data) error {
	return readData(r, to, []member[Donation]{
		{"donationId", func(r reader, d *Donation) error { return r.text("data.donationId", &d.DonationID) }, false},
		{"status", func(r reader, d *Donation) error { return r.text("data.status", (*string)(&d.Status)) }, false},
		{"amount", func(r reader, d *Donation) error { return r.text("data.amount", &d.Amount) }, false},
		{"currency", func(r reader, d *Donation) error { return r.text("data.currency", &d.Currency) }, false},
		{"confirmations", func(r reader, d *Donation) error { return r.integer("data.confirmations", &d.Confirmations) }, false},
		{"requiredConfirmations", func(r reader, d *Donation) error {
			return r.integer("data.requiredConfirmations", &d.RequiredConfirmations)
		}, false},
		{"createdAt", func(r reader, d *Donation) error { return r.time("data.createdAt", &d.CreatedAt) }, false},
		{"updatedAt", func(r reader, d *Donation) error { return r.time("data.updatedAt", &d.UpdatedAt) }, false},
		{"revision", func(r reader, d *Donation) error { return r.revision(&d.Revision) }, false},
	})
}

func (r reader) removal(to *Data) error {
	return readData(r, to, []member[DonationRemoval]{
		{"donationId", func(r reader, d *DonationRemoval) error { return r.text("data.donationId", &d.DonationID) }, false},
		{"revision", func(r reader, d *DonationRemoval) error { return r.revision(&d.Revision) }, false},
	})
}

// reader reads one JSON value token by token. The library is strict about syntax, duplicate members
// and UTF-8; reader adds what the contract asks. field is the path of a value, for errors.
type reader struct {
	dec    *jsontext.Decoder
	around int // levels around the value that dec began with
}

// member is a member of a JSON object: read reads its value into a T. An optional member may be
// missing, as in older events, which mean the zero value.
type member[T any] struct {
	name     string
	read     func(reader, *T) error
	optional bool
}

// readObject reads an object. Members that are not among members are skipped.
func readObject[T any](r reader, field string, members []member[T], to *T) error {
	if k := r.dec.PeekKind(); k != jsontext.KindBeginObject && k != jsontext.KindInvalid {
		if _, err := r.dec.ReadValue(); err != nil { // the kind is that of the first byte
			return err
		}
		return wrong(field, "must be an object")
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	var seen uint64 // bits, by position in members
	for r.dec.PeekKind() != jsontext.KindEndObject {
		name, err := r.name()
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(members, func(m member[T]) bool { return m.name == string(name) }); i >= 0 {
			seen |= 1 << i
			err = members[i].read(r, to)
		} else {
			err = r.skip()
		}
		if err != nil {
			return err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for i, m := range members {
		if m.optional || seen&(1<<i) != 0 {
			continue
		}
		if field == "event" { // the envelope's members stand alone
			return wrong(m.name, "missing")
		}
		return wrong(field+"."+m.name, "missing")
	}
	return nil
}

// name reads a member's name. The bytes are lent until the next read.
func (r reader) name() ([]byte, error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	return unquote(raw)
}

// unquote returns the text of a JSON string, which is part of raw where nothing is escaped.
func unquote(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	return jsontext.AppendUnquote(nil, raw)
}

// skip passes over a value, however deep it claims to be.
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
		if r.around+depth > maxDepth {
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
	return unquote(raw)
}

// optionalBytes is bytes for an attribute of CloudEvents that null makes absent: then the bytes are
// nil.
func (r reader) optionalBytes(field string) ([]byte, error) {
	if r.dec.PeekKind() == jsontext.KindNull {
		return nil, r.dec.SkipValue()
	}
	return r.bytes(field)
}

// text reads a string and copies it.
func (r reader) text(field string, to *string) error {
	b, err := r.bytes(field)
	*to = string(b)
	return err
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

// eventType reads a type of the contract, without a copy.
func (r reader) eventType(to *Type) error {
	b, err := r.bytes("type")
	if err != nil {
		return err
	}
	for _, t := range Types() {
		if string(b) == string(t) {
			*to = t
			return nil
		}
	}
	return wrongWords("type", "unknown type", quote(string(b)))
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

// contentType takes the JSON media types: application/json and all that end in +json.
func (r reader) contentType() error {
	b, err := r.optionalBytes("datacontenttype")
	if err != nil || b == nil || string(b) == "application/json" {
		return err
	}
	media, _, err := mime.ParseMediaType(string(b))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return wrong("datacontenttype", "must be JSON")
	}
	return nil
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

// integer reads a whole number written in digits alone: no sign, fraction or exponent. Its bounds are
// checked afterwards; a longer one stays too great for any.
func (r reader) integer(field string, to *int64) error {
	if k := r.dec.PeekKind(); k != jsontext.KindNumber && k != jsontext.KindInvalid {
		return wrong(field, "must be a number")
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	for _, c := range raw {
		if !isDigit(c) {
			return wrong(field, "must be a whole number written in digits alone")
		}
		if *to <= maxInteger {
			*to = *to*10 + int64(c-'0')
		}
	}
	return nil
}

// revision reads a revision. Its bounds are checked afterwards.
func (r reader) revision(to *int64) error { return r.integer("data.revision", to) }

// time reads an RFC 3339 time, cuts it to milliseconds and makes it UTC.
func (r reader) time(field string, to *time.Time) error {
	b, err := r.bytes(field)
	if err != nil {
		return err
	}
	return parseTime(field, b, to)
}

// optionalTime is time for an attribute of CloudEvents that null makes absent.
func (r reader) optionalTime(field string, to *time.Time) error {
	b, err := r.optionalBytes(field)
	if err != nil || b == nil {
		return err
	}
	return parseTime(field, b, to)
}

const notTime = "not an RFC 3339 time such as 2026-11-21T10:15:00Z"

// parseTime is as strict as RFC 3339, which allows a small t and z where Go does not, and forbids
// what wellFormed refuses. A leap second is refused: no time.Time stands for it.
func parseTime(field string, s []byte, to *time.Time) error {
	if len(s) > maxTimeText {
		return wrong(field, "longer than 64 bytes")
	}
	var buf [maxTimeText]byte
	b := buf[:copy(buf[:], s)]
	if !wellFormed(b) {
		return wrongTime(field, notTime, s)
	}
	if b[10] == 't' {
		b[10] = 'T'
	}
	if b[len(b)-1] == 'z' {
		b[len(b)-1] = 'Z'
	}
	var t time.Time
	if t.UnmarshalText(b) != nil {
		return wrongTime(field, notTime, s)
	}
	*to = t.UTC().Truncate(time.Millisecond)
	return nil
}

// wellFormed refuses what Go's parser lets through: an hour of one digit, a comma before the
// fraction, an offset of 24 hours or 60 minutes.
func wellFormed(b []byte) bool {
	const seconds = len("2006-01-02T15:04:05")
	if len(b) <= seconds || b[13] != ':' || b[seconds] == ',' {
		return false
	}
	if last := b[len(b)-1]; last == 'Z' || last == 'z' {
		return true
	}
	offset := b[len(b)-len("+00:00"):]
	return string(offset[1:3]) < "24" && string(offset[4:]) < "60"
}
