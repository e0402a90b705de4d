package events

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxErrorText = 200 // bytes of an error's text, also of the Registry-Reason header
	maxQuoted    = 40  // bytes of foreign text that an error may repeat
)

// Error is a violation of the contract by an event. Its text fits a message header: one line of at
// most 200 bytes without control characters, whatever the event contains.
type Error struct {
	Field   string // the member at fault, such as "data.name", or "event" for the whole event
	Problem string // such as "longer than 200 characters"

	plain string // Problem without text from the event; empty if Problem has no such text
}

// Error returns "<field>: <problem>".
func (e *Error) Error() string { return clipText(e.Field+": "+e.Problem, maxErrorText) }

// Plain returns the text of Error without any text from the event, for a log
// (events/CONTRACT.md#rejection).
func (e *Error) Plain() string {
	if e.plain == "" {
		return e.Error()
	}
	return e.Field + ": " + e.plain
}

// ErrBinaryMode rejects a CloudEvent in binary mode, whose attributes are headers.
var ErrBinaryMode = newError("event", "CloudEvents in binary mode (ce- headers) are not read; send structured mode: "+
	"the whole event as JSON, "+HeaderContent+" "+ContentType)

// IsBinaryMode reports whether a message with these headers is a CloudEvent in binary mode. Call it only if the
// payload does not decode as an event: an event is accepted with any headers of CloudEvents.
func IsBinaryMode(header map[string][]string) bool {
	media := header[HeaderContent]
	if len(media) > 0 && strings.HasPrefix(strings.ToLower(media[0]), "application/cloudevents") {
		return false // structured mode
	}

	for name := range header {
		if strings.EqualFold(name, "ce-specversion") {
			return true
		}
	}
	return false
}

var errStatus = newError("headers", "Status is the broker's own; send the event without the headers of another message")

// CheckHeaders returns an error if there is a header "Status". Some client libraries take a message with that
// header for the broker's own message, so some readers would miss the event.
func CheckHeaders(header map[string][]string) error {
	for name := range header {
		if strings.EqualFold(name, "status") {
			return errStatus
		}
	}
	return nil
}

func newError(field, problem string) error { return &Error{Field: field, Problem: problem} }

// newDataError is newError for a member of data.
func newDataError(member, problem string) error { return newError("data."+member, problem) }

// newQuotingError is newError with text from the event after the problem.
func newQuotingError(field, problem, text string) error {
	return &Error{Field: field, Problem: problem + " " + quoteASCII(text), plain: problem}
}

// timeCharacters are the characters of times in the formats of databases and languages.
const timeCharacters = "0123456789-+:.,/ TtZz"

// newTimeError is newError for a time. It quotes a text that looks like a time: the usual mistake is another
// format, and the sender may not know which format a library chose.
func newTimeError(field, problem, written string) error {
	looksLikeTime := written != "" && len(written) <= maxQuoted && strings.Trim(written, timeCharacters) == ""
	if !looksLikeTime {
		return newError(field, problem)
	}
	return &Error{Field: field, Problem: problem + ": " + quoteASCII(written), plain: problem}
}

// quoteASCII returns the beginning of foreign text, quoted, in printable ASCII.
func quoteASCII(s string) string {
	beginning := clipText(s, maxQuoted)
	quoted := clipText(strconv.QuoteToASCII(beginning), 2*maxQuoted) // escapes have lengthened the text
	if len(beginning) < len(s) {
		quoted += "..."
	}
	return quoted
}

// clipText cuts s to at most n bytes without splitting a character. A cut text is valid UTF-8.
func clipText(s string, n int) string {
	if len(s) <= n {
		return s
	}

	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "")
}
