package events

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"reflect"
	"regexp"
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
	if len(payload) > MaxPayload {
		return Event{}, newError("event", "longer than "+strconv.Itoa(MaxPayload)+" bytes")
	}
	if bytes.Contains(payload, []byte(`\u0000`)) && escapedNUL.Match(payload) { // Contains spares most payloads the slower Match
		return Event{}, newError("event", "contains NUL")
	}

	// Read the envelope, then the data: the type in the envelope says which members the data has.
	var env envelopeJSON
	if err := readObject("event", payload, &env); err != nil {
		return Event{}, err
	}
	if *env.SpecVersion != "1.0" {
		return Event{}, newError("specversion", "must be 1.0")
	}
	if env.ContentType != nil && !isJSONType(*env.ContentType) {
		return Event{}, newError("datacontenttype", "must be JSON")
	}

	data, err := decodeData(Type(*env.Type), env.Data)
	if err != nil {
		return Event{}, err
	}

	e := Event{ID: *env.ID, Source: *env.Source, Type: Type(*env.Type), Data: data}
	if env.Time != nil {
		if e.Time, err = parseTime("time", *env.Time); err != nil {
			return Event{}, err
		}
	}

	// The members are there and of the right kind. Are their values within the bounds?
	if err := Validate(e); err != nil {
		return Event{}, err
	}
	return e, nil
}

// DecodeMessage is Decode for a message of the stream. It also rejects an unknown subject, and a subject
// that differs from the subject of the data.
func DecodeMessage(subject string, payload []byte) (Event, error) {
	published, err := ParseSubject(subject)
	if err != nil {
		return Event{}, err
	}

	e, err := Decode(payload)
	if err != nil {
		return Event{}, err
	}

	if described := e.Data.Subject(); described != published {
		return Event{}, &Error{Field: "subject", Problem: "subject says " + subject + ", data says " + described.String(), plain: "not the one of the data"}
	}
	return e, nil
}

// escapedNUL matches an escaped NUL in JSON text. Two backslashes stand for one, so \u0000 is an escape only after
// an even number of backslashes. To the JSON library, NUL without an escape is a syntax error.
var escapedNUL = regexp.MustCompile(`(^|[^\\])(\\\\)*\\u0000`)

// isJSONType reports whether a media type is application/json, or ends in +json.
func isJSONType(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// The JSON of events. A nil pointer means that the member is missing or null. readObject refuses both, except for
// members with omitzero.
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

// decodeData reads the data of an event of type t. It leaves the bounds of the members to Validate.
func decodeData(t Type, raw []byte) (Data, error) {
	switch t {
	case TypeListed, TypeVerified, TypeAmended:
		return decodeEntry(raw)

	case TypeDelisted:
		var m delistingJSON
		if err := readObject("data", raw, &m); err != nil {
			return nil, err
		}
		return Delisting{List: List(*m.List), EntryID: *m.EntryID, Revision: *m.Revision}, nil

	case TypeViewsCounted:
		var m viewsJSON
		if err := readObject("data", raw, &m); err != nil {
			return nil, err
		}
		return Views{List: List(*m.List), EntryID: *m.EntryID, Revision: *m.Revision, Views: *m.Views}, nil

	case TypeDonationUpdated:
		return decodeDonation(raw)

	case TypeDonationRemoved:
		var m removalJSON
		if err := readObject("data", raw, &m); err != nil {
			return nil, err
		}
		return DonationRemoval{DonationID: *m.DonationID, Revision: *m.Revision}, nil
	}
	return nil, newQuotingError("type", "unknown type", string(t))
}

func decodeEntry(raw []byte) (Data, error) {
	var m entryJSON
	if err := readObject("data", raw, &m); err != nil {
		return nil, err
	}
	if missing := missingMember(m.Proofs); missing != "" {
		return nil, newDataError("proofs."+missing, "missing")
	}

	reportedAt, err := parseTime("data.reportedAt", *m.ReportedAt)
	if err != nil {
		return nil, err
	}

	proofsID, err := decodeProofsID(m.Proofs.ID)
	if err != nil {
		return nil, err
	}

	return Entry{
		List: List(*m.List), EntryID: *m.EntryID, ChatID: *m.ChatID, Name: *m.Name, Reason: *m.Reason,
		Verified: *m.Verified, Proofs: Proofs{ID: proofsID, Private: *m.Proofs.Private},
		ReportID: *m.ReportID, ReportedAt: reportedAt, Revision: *m.Revision,
	}, nil
}

// decodeProofsID returns the id, or "" for null. It refuses an empty string, which would pass for null.
func decodeProofsID(raw jsontext.Value) (id string, err error) {
	if raw.Kind() == jsontext.KindNull {
		return "", nil
	}

	if json.Unmarshal(raw, &id) != nil {
		return "", newDataError("proofs.id", "must be a string")
	}
	if id == "" {
		return "", checkID("proofs.id", "") // always an error
	}
	return id, nil
}

func decodeDonation(raw []byte) (Data, error) {
	var m donationJSON
	if err := readObject("data", raw, &m); err != nil {
		return nil, err
	}

	createdAt, err := parseTime("data.createdAt", *m.CreatedAt)
	if err != nil {
		return nil, err
	}

	updatedAt, err := parseTime("data.updatedAt", *m.UpdatedAt)
	if err != nil {
		return nil, err
	}

	return Donation{
		DonationID: *m.DonationID, Status: DonationStatus(*m.Status), Amount: *m.Amount, Currency: *m.Currency,
		Confirmations: *m.Confirmations, RequiredConfirmations: *m.RequiredConfirmations,
		CreatedAt: createdAt, UpdatedAt: updatedAt, Revision: *m.Revision,
	}, nil
}

// readObject reads JSON into object, a pointer to one of the structs above, and refuses JSON that lacks a
// required member. name is the name of the object in errors: "event" or "data".
func readObject(name string, raw []byte, object any) error {
	if err := json.Unmarshal(raw, object); err != nil {
		return explainJSON(err, name, raw)
	}
	if missing := missingMember(object); missing != "" {
		return newError(memberPath(name, missing), "missing")
	}
	return nil
}

// memberPath returns the name of an object's member in errors, such as "data.name", or "id" in the envelope.
func memberPath(name, member string) string {
	if name == "event" {
		return member
	}
	return name + "." + member
}

// missingMember returns the name of the first required member that is missing, or "". object points to one
// of the structs above. The tag of an optional member has an option after the name: omitzero.
func missingMember(object any) string {
	members := reflect.ValueOf(object).Elem()
	for i := range members.NumField() {
		name, option, _ := strings.Cut(members.Type().Field(i).Tag.Get("json"), ",")
		if members.Field(i).IsNil() && option == "" {
			return name
		}
	}
	return ""
}

// explainJSON turns an error of the JSON library about the named object into an *Error that repeats no input.
func explainJSON(err error, name string, raw []byte) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return newError("event", "an object has the same member twice")
	}
	if !utf8.Valid(raw) {
		return newError("event", "invalid UTF-8")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return newError("event", "not JSON: ends too early")
	}

	// A semantic error is about a value of the wrong kind: the object itself, or a member, such as /proofs/id.
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		member := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
		if member == "" {
			return newError(name, describeKind(semantic))
		}
		return newError(memberPath(name, member), describeKind(semantic))
	}

	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return newError("event", "not JSON that RFC 8259 allows, at byte "+strconv.FormatInt(syntax.ByteOffset, 10)) // counts from 0
	}
	return newError("event", "not JSON that RFC 8259 allows")
}

// describeKind returns the problem of a value of the wrong kind: it names the kind of JSON that the Go type needs.
func describeKind(err *json.SemanticError) string {
	want := reflect.Struct // unless the error has a type
	if err.GoType != nil {
		want = err.GoType.Kind()
	}

	switch want {
	case reflect.Struct:
		return "must be an object"
	case reflect.Bool:
		return "must be true or false"
	case reflect.Int64:
		if err.JSONKind == jsontext.KindNumber {
			return "must be a whole number written in digits alone"
		}
		return "must be a number"
	}
	return "must be a string"
}

// parseTime reads an RFC 3339 time, cuts it to milliseconds and makes it UTC. A leap second is
// refused: no time.Time stands for it.
func parseTime(field, written string) (time.Time, error) {
	if len(written) > maxTimeText {
		return time.Time{}, newError(field, "longer than 64 bytes")
	}

	// The JSON library is as strict as RFC 3339, and package time is not. But RFC 3339 also allows a small t and z.
	quoted, _ := jsontext.AppendQuote(nil, strings.ToUpper(written)) // no error: written is valid UTF-8
	var t time.Time
	if err := json.Unmarshal(quoted, &t); err != nil {
		return time.Time{}, newTimeError(field, "not an RFC 3339 time such as 2026-11-21T10:15:00Z", written)
	}
	return t.UTC().Truncate(time.Millisecond), nil
}
