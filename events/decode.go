package events

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"reflect"
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
	e, bad := decode(payload)
	if bad != nil {
		return Event{}, bad
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

func decode(payload []byte) (Event, *Error) {
	if len(payload) > MaxPayload {
		return Event{}, wrong("event", "longer than "+strconv.Itoa(MaxPayload)+" bytes")
	}
	if hasEscapedNUL(payload) {
		return Event{}, wrong("event", "contains NUL")
	}

	var env envelopeJSON
	if bad := readObject("event", payload, &env); bad != nil {
		return Event{}, bad
	}
	if *env.SpecVersion != "1.0" {
		return Event{}, wrong("specversion", "must be 1.0")
	}
	if env.ContentType != nil && !isJSONType(*env.ContentType) {
		return Event{}, wrong("datacontenttype", "must be JSON")
	}

	e := Event{ID: *env.ID, Source: *env.Source, Type: Type(*env.Type)}
	if !isType(e.Type) {
		return Event{}, wrongWords("type", "unknown type", quote(*env.Type))
	}
	var bad *Error
	if env.Time != nil {
		if e.Time, bad = parseTime("time", *env.Time); bad != nil {
			return Event{}, bad
		}
	}
	if e.Data, bad = decodeData(e.Type, env.Data); bad != nil {
		return Event{}, bad
	}

	if bad := validate(&e); bad != nil {
		return Event{}, bad
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

// isJSONType reports whether a media type is application/json or one that ends in +json.
func isJSONType(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// The JSON of events. A member is a pointer, so that one that is missing (or null, which is no value)
// differs from a zero value. Those with omitzero may be missing.
type (
	envelopeJSON struct {
		SpecVersion *string        `json:"specversion"`
		ID          *string        `json:"id"`
		Source      *string        `json:"source"`
		Type        *string        `json:"type"`
		Time        *string        `json:"time,omitzero"`
		ContentType *string        `json:"datacontenttype,omitzero"`
		Data        jsontext.Value `json:"data"`
	}

	entryJSON struct {
		List       *string     `json:"list"`
		EntryID    *string     `json:"entryId"`
		ChatID     *string     `json:"chatId"`
		Name       *string     `json:"name"`
		Reason     *string     `json:"reason"`
		Verified   *bool       `json:"verified"`
		Proofs     *proofsJSON `json:"proofs"`
		ReportID   *string     `json:"reportId"`
		ReportedAt *string     `json:"reportedAt"`
		Revision   *int64      `json:"revision"`
	}

	proofsJSON struct {
		ID      jsontext.Value `json:"id"` // a string or null
		Private *bool          `json:"private"`
	}

	delistingJSON struct {
		List     *string `json:"list"`
		EntryID  *string `json:"entryId"`
		Revision *int64  `json:"revision"`
	}

	viewsJSON struct {
		List     *string `json:"list"`
		EntryID  *string `json:"entryId"`
		Revision *int64  `json:"revision"`
		Views    *int64  `json:"views"`
	}

	donationJSON struct {
		DonationID            *string `json:"donationId"`
		Status                *string `json:"status"`
		Amount                *string `json:"amount"`
		Currency              *string `json:"currency"`
		Confirmations         *int64  `json:"confirmations"`
		RequiredConfirmations *int64  `json:"requiredConfirmations"`
		CreatedAt             *string `json:"createdAt"`
		UpdatedAt             *string `json:"updatedAt"`
		Revision              *int64  `json:"revision"`
	}

	removalJSON struct {
		DonationID *string `json:"donationId"`
		Revision   *int64  `json:"revision"`
	}
)

// decodeData reads the data of an event of type t. Bounds are checked afterwards, by checkData.
func decodeData(t Type, raw []byte) (Data, *Error) {
	switch t {
	case TypeDelisted:
		var m delistingJSON
		if bad := readObject("data", raw, &m); bad != nil {
			return nil, bad
		}
		return Delisting{List: List(*m.List), EntryID: *m.EntryID, Revision: *m.Revision}, nil

	case TypeViewsCounted:
		var m viewsJSON
		if bad := readObject("data", raw, &m); bad != nil {
			return nil, bad
		}
		return Views{List: List(*m.List), EntryID: *m.EntryID, Revision: *m.Revision, Views: *m.Views}, nil

	case TypeDonationUpdated:
		return decodeDonation(raw)

	case TypeDonationRemoved:
		var m removalJSON
		if bad := readObject("data", raw, &m); bad != nil {
			return nil, bad
		}
		return DonationRemoval{DonationID: *m.DonationID, Revision: *m.Revision}, nil
	}
	return decodeEntry(raw)
}

func decodeEntry(raw []byte) (Data, *Error) {
	var m entryJSON
	if bad := readObject("data", raw, &m); bad != nil {
		return nil, bad
	}
	if missing := missingMember(m.Proofs); missing != "" {
		return nil, inData("proofs."+missing, "missing")
	}

	e := Entry{
		List: List(*m.List), EntryID: *m.EntryID, ChatID: *m.ChatID, Name: *m.Name, Reason: *m.Reason,
		Verified: *m.Verified, ReportID: *m.ReportID, Revision: *m.Revision,
		Proofs: Proofs{Private: *m.Proofs.Private},
	}
	var bad *Error
	if e.ReportedAt, bad = parseTime("data.reportedAt", *m.ReportedAt); bad != nil {
		return nil, bad
	}
	if m.Proofs.ID.Kind() == jsontext.KindNull {
		return e, nil
	}

	// An empty string would pass for null later.
	if json.Unmarshal(m.Proofs.ID, &e.Proofs.ID) != nil {
		return nil, inData("proofs.id", "must be a string")
	}
	if e.Proofs.ID == "" {
		return nil, checkID("proofs.id", "")
	}
	return e, nil
}

func decodeDonation(raw []byte) (Data, *Error) {
	var m donationJSON
	if bad := readObject("data", raw, &m); bad != nil {
		return nil, bad
	}

	d := Donation{
		DonationID: *m.DonationID, Status: DonationStatus(*m.Status), Amount: *m.Amount, Currency: *m.Currency,
		Confirmations: *m.Confirmations, RequiredConfirmations: *m.RequiredConfirmations, Revision: *m.Revision,
	}
	var bad *Error
	if d.CreatedAt, bad = parseTime("data.createdAt", *m.CreatedAt); bad != nil {
		return nil, bad
	}
	if d.UpdatedAt, bad = parseTime("data.updatedAt", *m.UpdatedAt); bad != nil {
		return nil, bad
	}
	return d, nil
}

// readObject reads a JSON object into the struct to which a pointer is given, and refuses one that
// lacks a member. field is the path of the object: "event" or "data".
func readObject(field string, raw []byte, to any) *Error {
	prefix := ""
	if field != "event" { // the envelope's members stand alone
		prefix = field + "."
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return explain(err, field, prefix, raw)
	}
	if missing := missingMember(to); missing != "" {
		return wrong(prefix+missing, "missing")
	}
	return nil
}

// missingMember returns the name of the first member that a struct must have and has not, or "".
func missingMember(object any) string {
	members := reflect.ValueOf(object).Elem()
	for i := range members.NumField() {
		name, optional, _ := strings.Cut(members.Type().Field(i).Tag.Get("json"), ",")
		if members.Field(i).IsNil() && optional == "" {
			return name
		}
	}
	return ""
}

// explain turns an error of the JSON library into an *Error that repeats no input.
func explain(err error, field, prefix string, raw []byte) *Error {
	var semantic *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return wrong("event", "an object has the same member twice")
	case !utf8.Valid(raw):
		return wrong("event", "invalid UTF-8")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return wrong("event", "not JSON: ends too early")
	case errors.As(err, &semantic):
		if path := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", "."); path != "" {
			field = prefix + path
		}
		return wrong(field, mustBe(semantic))
	case errors.As(err, &syntax):
		return wrong("event", "not JSON that RFC 8259 allows, at byte "+strconv.FormatInt(syntax.ByteOffset, 10)) // from 0
	}
	return wrong("event", "not JSON that RFC 8259 allows")
}

// mustBe says which kind of value a member has to have.
func mustBe(err *json.SemanticError) string {
	of := err.GoType
	for of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == nil || of.Kind() == reflect.Struct:
		return "must be an object"
	case of.Kind() == reflect.Bool:
		return "must be true or false"
	case of.Kind() == reflect.Int64 && err.JSONKind == jsontext.KindNumber:
		return "must be a whole number written in digits alone"
	case of.Kind() == reflect.Int64:
		return "must be a number"
	}
	return "must be a string"
}

const notTime = "not an RFC 3339 time such as 2026-11-21T10:15:00Z"

// parseTime reads an RFC 3339 time, cuts it to milliseconds and makes it UTC. A leap second is
// refused: no time.Time stands for it.
func parseTime(field, written string) (time.Time, *Error) {
	if len(written) > maxTimeText {
		return time.Time{}, wrong(field, "longer than 64 bytes")
	}

	// RFC 3339 allows a small t and z; Go does not.
	text := strings.ToUpper(written)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !isStrictTime(text) {
		return time.Time{}, wrongTime(field, notTime, []byte(written))
	}
	return t.UTC().Truncate(time.Millisecond), nil
}

// isStrictTime refuses what Go's parser lets through: an hour of one digit, a comma before the
// fraction, an offset of 24 hours or 60 minutes.
func isStrictTime(s string) bool {
	const seconds = len("2006-01-02T15:04:05")
	if len(s) <= seconds || s[13] != ':' || s[seconds] == ',' {
		return false
	}
	if strings.HasSuffix(s, "Z") {
		return true
	}
	offset := s[len(s)-len("+00:00"):]
	return offset[1:3] < "24" && offset[4:] < "60"
}
