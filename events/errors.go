package events

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxReason = 200 // bytes of an error's text, also of the Registry-Reason header
	maxQuoted = 40  // bytes of foreign text that an error may repeat
)

// Error says what is wrong with an event. Its text fits a message header: one line of at most 200
// bytes without control characters, whatever the event contains.
type Error struct {
	Field   string // the member at fault, such as "data.name"; "event" for the whole
	Problem string // such as "longer than 200 characters"

	plain string // Problem without words of the event; empty: Problem has none
}

// Error returns "<field>: <problem>".
func (e *Error) Error() string { return clip(e.Field+": "+e.Problem, maxReason) }

// Plain is Error without any word of the event's, for a log (events/CONTRACT.md#rejection).
func (e *Error) Plain() string {
	if e.plain == "" {
		return e.Error()
	}
	return e.Field + ": " + e.plain
}

func wrong(field, problem string) *Error { return &Error{Field: field, Problem: problem} }

// wrongWords is wrong with words of the event's after the problem.
func wrongWords(field, problem, words string) *Error {
	return &Error{Field: field, Problem: problem + " " + words, plain: problem}
}

// inData is wrong for a member of data.
func inData(field, problem string) *Error { return wrong("data."+field, problem) }

// quote returns the beginning of foreign text, quoted, in printable ASCII.
func quote(s string) string {
	cut := clip(s, maxQuoted)
	if len(cut) < len(s) {
		return clip(strconv.QuoteToASCII(cut), 2*maxQuoted) + "..."
	}
	return clip(strconv.QuoteToASCII(cut), 2*maxQuoted)
}

// clip cuts s to at most n bytes without splitting a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "")
}
