package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
)

// failure is an error that the client is told.
type failure struct {
	status     int
	code       string // Registry-Error, for programs
	text       string // in Polish, for people
	retryAfter string // in seconds; "" for no header

	param  string // the parameter that is wrong or missing, if any
	reason string // in English, for operators
}

func (f *failure) Error() string { return cmp.Or(f.reason, f.text) }

// These are the rows of the table in httpapi/CONTRACT.md#errors. The functions invalid, missing, loading and rateLimited return a
// copy of a row with details.
var (
	errInvalid     = &failure{status: http.StatusBadRequest, code: "invalid-parameter", text: "Nieprawidłowy parametr: %s."}
	errMissing     = &failure{status: http.StatusBadRequest, code: "missing-parameter", text: "Brak wymaganego parametru: %s."}
	errNotFound    = &failure{status: http.StatusNotFound, code: "not-found", text: "Nie znaleziono."}
	errMethod      = &failure{status: http.StatusMethodNotAllowed, code: "method-not-allowed", text: "Metoda niedozwolona"}
	errGone        = &failure{status: http.StatusGone, code: "gone", text: "Zmiany sprzed tej pozycji nie są już dostępne."}
	errRateLimited = &failure{status: http.StatusTooManyRequests, code: "rate-limited", text: "Zbyt wiele zapytań."}
	errInternal    = &failure{status: http.StatusInternalServerError, code: "internal", text: "Błąd podczas pobierania danych."}
	errLoading     = &failure{status: http.StatusServiceUnavailable, code: "not-ready", text: "Trwa wczytywanie danych.", retryAfter: "5", reason: "not caught up with the stream"}
	errNotReached  = &failure{status: http.StatusServiceUnavailable, code: "not-ready", text: "Trwa wczytywanie danych.", retryAfter: "1"}
	errBusy        = &failure{status: http.StatusServiceUnavailable, code: "overloaded", text: "Serwer jest przeciążony.", retryAfter: "1"}
)

func invalid(name string) error { return errInvalid.withParam(name) }

func missing(name string) error { return errMissing.withParam(name) }

func (f failure) withParam(name string) *failure {
	f.param = name
	f.text = fmt.Sprintf(f.text, name)
	return &f
}

// loading returns errLoading with the reason that /readyz shows. If reason is empty, the reason of errLoading stays.
func loading(reason string) error {
	f := *errLoading
	f.reason = cmp.Or(reason, f.reason)
	return &f
}

// errEmpty is the failure while the registry has no entries but must have some (Health.MinEntries).
var errEmpty = loading("the registry is empty: lists and checks are answered once somebody is listed; --min-entries 0 answers them now")

func rateLimited(retryAfter string) error {
	f := *errRateLimited
	f.retryAfter = retryAfter
	return &f
}

// failureOf returns the failure that the client is told. An unexpected error becomes errInternal: its text goes to the log, never
// to a client.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}

	// A context ends because the client has gone, the server stops, or a search took too long (rankedWithin).
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errBusy
	}
	return errInternal
}
