package site

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"example.org/registry/httpapi/internal/bounds"
)

// Failed is a failed request. Status and Text are those of the API.
type Failed struct {
	Status int
	Text   string
	Empty  bool   // the registry has no entries yet
	Param  string // the parameter that caused it, or ""
	Path   string // of the page
	Search string // what was searched, if anything was
	Query  string // of the address, as it was sent
}

// failureView is the data of error.html.
type failureView struct {
	Text  string // what happened, and what to do
	Again string // the page's own address, where asking again can help
	Form  string // action of the search form, if there is one
	Words bool   // the form is for ranked search
	Asked string // the text in the form
	Card  bool   // people who have already paid see what to do
}

// Failure returns the page for a failure.
func Failure(failed Failed) Page {
	const unknown = " To nie znaczy, że tej osoby nie ma na liście."
	title, v := "Coś się u nas zepsuło", failureView{Text: "To nie Twoja wina. Spróbuj ponownie za chwilę.", Card: true}
	switch failed.Status {
	case http.StatusBadRequest:
		title, v.Text = invalid(failed)
		if failed.Param == "search" || failed.Param == "q" || failed.Param == "id" && failed.Path == "/" {
			v.Form, v.Words, v.Asked = failed.Path, failed.Param == "q", validText(failed.Search)
		}
	case http.StatusNotFound:
		title, v.Text, v.Card = "Nie ma takiej strony", "Pod tym adresem nic nie ma. Sprawdź, czy jest pełny.", false
		if failed.Path == "/wpis" || strings.HasPrefix(failed.Path, "/wpis/") {
			title, v.Text = "Nie ma takiego wpisu", "Tego wpisu nie ma w rejestrze: mógł zostać usunięty. To nie jest zarzut wobec nikogo."
		}
	case http.StatusMethodNotAllowed:
		title, v.Text, v.Card = "Tej strony nie można otworzyć w ten sposób", "Strony rejestru można tylko czytać.", false
	case http.StatusTooManyRequests:
		title, v.Text = "Za dużo zapytań naraz", "Odczekaj chwilę i spróbuj ponownie."+unknown
	case http.StatusServiceUnavailable:
		title, v.Text = strings.TrimSuffix(failed.Text, "."), "Nie możemy teraz odpowiedzieć."+unknown
		if failed.Empty {
			title, v.Text = "Rejestr jest pusty", "Nie ma w nim jeszcze żadnego wpisu, więc niczego nie da się sprawdzić. To nie znaczy, że można zaufać."
		}
	}

	if failed.Status >= http.StatusTooManyRequests {
		v.keep(failed)
	}
	return Page{Title: title, Data: v, Finds: v.Form != ""}
}

// keep keeps what was asked: the address, and on the person check the text in its field.
func (v *failureView) keep(failed Failed) {
	v.Again = failed.Path
	if failed.Query != "" {
		v.Again += "?" + failed.Query
	}
	if failed.Path == "/" && failed.Search != "" {
		v.Form, v.Asked = "/", validText(failed.Search)
	}
}

// invalid says what is wrong with a parameter.
func invalid(failed Failed) (title, text string) {
	limit := number(bounds.MaxSearch) + " znaków."
	switch failed.Param {
	case "search", "q":
		if utf8.RuneCountInString(strings.TrimSpace(failed.Search)) > bounds.MaxSearch && failed.Path != "/" {
			return "Za długi tekst", "Wpisz najwyżej " + limit
		}
		return "Tego tekstu nie da się wyszukać", "Wpisz zwykły tekst."
	case "id":
		text = "ID może mieć najwyżej " + forms{"znak", "znaki", "znaków"}.count(bounds.MaxID) + ". Wklej samo ID albo link do profilu."
	case "skip":
		text = "Nie ma tylu stron. Zawęź listę wyszukiwaniem albo filtrem."
	case "query":
		text = "Adres strony jest uszkodzony albo za długi. Wróć i wpisz krótszy tekst."
	default:
		text = "Wróć i wybierz ustawienie jeszcze raz."
	}
	return "Nieprawidłowy adres strony", text
}

// validText returns the part of a text that is valid in a field, in full length.
func validText(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}
