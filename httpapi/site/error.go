package site

import (
	"net/http"
	"strings"
)

// Failure is what a page says instead of what was asked for.
type Failure struct {
	Title string
	Text  string // what happened
	Hint  string // what to do
	Again bool   // the page asks again by itself
}

// FailureOf is the page for an answer of that status. text is the API's words for it, param the
// parameter that is to blame, if one is; again says that the reader's browser will ask again.
func FailureOf(status int, text, param string, again bool) Page {
	f := Failure{Text: text, Again: again}
	switch status {
	case http.StatusBadRequest:
		f.Title, f.Hint = "Nie rozumiem tego pytania", paramHint(param)
	case http.StatusNotFound:
		f.Title, f.Text = "Nie ma takiej strony", "Adres jest niepełny albo strona została usunięta."
	case http.StatusMethodNotAllowed:
		f.Title, f.Hint = "Tak się tej strony nie otwiera", "Strony rejestru można tylko czytać."
	case http.StatusTooManyRequests:
		f.Title, f.Hint = "Za dużo zapytań", "Odczekaj chwilę i odśwież stronę."
	case http.StatusServiceUnavailable:
		f.Title = strings.TrimSuffix(text, ".")
		f.Text = "Dopóki dane nie są kompletne, rejestr nie odpowiada: brak odpowiedzi nie znaczy, że kogoś nie ma na liście."
	default:
		f.Title, f.Hint = "Coś się u nas zepsuło", "To nie Twoja wina. Spróbuj ponownie za chwilę."
	}
	return Page{Title: f.Title, Data: f}
}

// paramHint says in plain words what a parameter may be.
func paramHint(param string) string {
	switch param {
	case "search":
		return "Szukany tekst może mieć najwyżej 100 znaków i musi być zwykłym tekstem. Skróć go i spróbuj ponownie."
	case "id":
		return "Identyfikator może mieć najwyżej 64 znaki. Wklej sam identyfikator albo adres profilu."
	case "skip":
		return "Tak daleko listy nie da się przeglądać. Zawęź ją wyszukiwaniem albo filtrem."
	case "query":
		return "Adres strony jest uszkodzony. Wróć i spróbuj jeszcze raz."
	}
	return "Wróć do strony i wybierz ustawienie jeszcze raz."
}
