package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
)

// failure is an answer that is no success: a row of the table of httpapi/CONTRACT.md#errors, as an error.
type failure struct {
	status     int
	code       string // Registry-Error, for programs
	text       string // in Polish, for people
	retryAfter string // in seconds; "" for no header

	param  string // that is wrong or missing
	reason string // in English, for operators
}

func (f *failure) Error() string { return cmp.Or(f.reason, f.text) }

// The failures. Functions return those that say more.
var (
	errNotFound   = &failure{status: http.StatusNotFound, code: "not-found", text: "Nie znaleziono."}
	errMethod     = &failure{status: http.StatusMethodNotAllowed, code: "method-not-allowed", text: "Metoda niedozwolona"}
	errGone       = &failure{status: http.StatusGone, code: "gone", text: "Zmiany sprzed tej pozycji nie są już dostępne."}
	errInternal   = &failure{status: http.StatusInternalServerError, code: "internal", text: "Błąd podczas pobierania danych."}
	errLoading    = notReady("not caught up with the stream", "5") // loading takes seconds
	errNotReached = notReady("the sequence asked for is not reached", "1")
	errBusy       = &failure{status: http.StatusServiceUnavailable, code: "overloaded", text: "Serwer jest przeciążony.", retryAfter: "1"}
)

func invalid(name string) error {
	return &failure{status: http.StatusBadRequest, code: "invalid-parameter", text: "Nieprawidłowy parametr: " + name + ".", param: name}
}

func missing(name string) error {
	return &failure{status: http.StatusBadRequest, code: "missing-parameter", text: "Brak wymaganego parametru: " + name + ".", param: name}
}

func rateLimited(retryAfter string) error {
	return &failure{status: http.StatusTooManyRequests, code: "rate-limited", text: "Zbyt wiele zapytań.", retryAfter: retryAfter}
}

func notReady(reason, retryAfter string) *failure {
	return &failure{status: http.StatusServiceUnavailable, code: "not-ready", text: "Trwa wczytywanie danych.", retryAfter: retryAfter, reason: reason}
}

// failureOf returns what a client is told of err. What is no failure is a 500, and its detail is for the log alone.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	// A context ends because the client has gone or the server stops.
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errBusy
	}
	return errInternal
}

// isMissing reports whether err means that a required parameter is absent.
func isMissing(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.code == "missing-parameter"
}
