package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"example.org/registry/httpapi/respond"
)

// The failures that a handler returns. Only replyTo decides what a client sees of them.
var (
	errNotFound   = errors.New("not found")
	errMethod     = errors.New("method not allowed")
	errGone       = errors.New("the feed does not go on from there")
	errLoading    = errors.New("the read model is not ready")
	errNotReached = errors.New("the read model has not reached the sequence asked for")
	errBusy       = errors.New("too much work of this kind already")
)

// paramError is a wrong parameter or header or, if missing is set, an absent one.
type paramError struct {
	name    string
	missing bool
}

func (e *paramError) Error() string {
	if e.missing {
		return "missing parameter " + e.name
	}
	return "invalid parameter " + e.name
}

func invalid(name string) error { return &paramError{name: name} }
func missing(name string) error { return &paramError{name: name, missing: true} }

// blamed returns the name of the parameter in err, or "".
func blamed(err error) string {
	if param, ok := errors.AsType[*paramError](err); ok {
		return param.name
	}
	return ""
}

// isMissing reports whether err means that a parameter is absent.
func isMissing(err error) bool {
	var param *paramError
	return errors.As(err, &param) && param.missing
}

// rateError means that a client sends too many requests.
type rateError struct{ retryAfter string } // whole seconds

func (e *rateError) Error() string { return "rate limit exceeded" }

// panicError is a handler's panic, for the log.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// errorHeader is the header with the kind of a failure, for programs.
const errorHeader = "Registry-Error"

// reply is the public part of a failure.
type reply struct {
	status     int
	code       string // the value of errorHeader
	text       string // in Polish, for people
	retryAfter string // seconds, or "" for no header
}

// Values of Retry-After, in seconds.
const (
	retryLoading = "5" // loading takes seconds
	retrySoon    = "1"
)

// replyTo is the table of failures (httpapi/CONTRACT.md#errors). An unknown error is a 500, and its
// detail belongs only in the log.
func replyTo(err error) reply {
	var param *paramError
	var limit *rateError
	switch {
	case errors.As(err, &param) && param.missing:
		return reply{http.StatusBadRequest, "missing-parameter", "Brak wymaganego parametru: " + param.name + ".", ""}
	case param != nil:
		return reply{http.StatusBadRequest, "invalid-parameter", "Nieprawidłowy parametr: " + param.name + ".", ""}
	case errors.Is(err, errNotFound):
		return reply{http.StatusNotFound, "not-found", "Nie znaleziono.", ""}
	case errors.Is(err, errGone):
		return reply{http.StatusGone, "gone", "Zmiany sprzed tej pozycji nie są już dostępne.", ""}
	case errors.Is(err, errMethod):
		return reply{http.StatusMethodNotAllowed, "method-not-allowed", "Metoda niedozwolona", ""}
	case errors.As(err, &limit):
		return reply{http.StatusTooManyRequests, "rate-limited", "Zbyt wiele zapytań.", limit.retryAfter}
	case errors.Is(err, errLoading):
		return reply{http.StatusServiceUnavailable, "not-ready", "Trwa wczytywanie danych.", retryLoading}
	case errors.Is(err, errNotReached):
		return reply{http.StatusServiceUnavailable, "not-ready", "Trwa wczytywanie danych.", retrySoon}
	case errors.Is(err, errBusy), errors.Is(err, respond.ErrFull), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		// A context ends because the client disconnected or the server stops: that is no failure.
		return reply{http.StatusServiceUnavailable, "overloaded", "Serwer jest przeciążony.", retrySoon}
	default:
		return reply{http.StatusInternalServerError, "internal", "Błąd podczas pobierania danych.", ""}
	}
}

// appendJSON appends the body of the reply. Its texts need no escaping.
func (r reply) appendJSON(dst []byte) []byte {
	return append(append(append(dst, `{"error":"`...), r.text...), `"}`...)
}
