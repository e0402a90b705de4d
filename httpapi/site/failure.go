package site

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"example.org/registry/httpapi/internal/bounds"
)

// Failed is a failed request.
type Failed struct {
	Status int    // as the API answers
	Text   string // as the API answers
	Empty  bool   // the registry has no entries yet
	Param  string // the parameter that is wrong or missing, or ""
	Path   string // the path that was asked for
	Search string // the text that the visitor typed, if any
	Query  string // the query string, as it was sent
}

// failureView is the data of error.html.
type failureView struct {
	searchForm        // without an action, the page has no form
	Status     int    // decides whether the page has the advice for people who have already paid
	Param      string // q if the form is for ranked search
	Text       string // explains the failure, and says what to do
	Again      string // the address that was asked for, if asking again can help
}

func (f Failed) page() page {
	title, text := f.describe()
	v := failureView{Status: f.Status, Param: f.Param, Text: text}

	// Show the typed text in a form: a refused text can be corrected there, and a check sent again.
	isCheckToRepeat := f.canRetry() && f.Path == "/" && f.Search != ""
	if f.hasRefusedText() || isCheckToRepeat {
		v.Action = f.Path
		v.Asked = strings.ToValidUTF8(strings.ReplaceAll(f.Search, "\x00", ""), "")
	}

	// Offer the same address once more.
	if f.canRetry() {
		v.Again = f.Path
		if f.Query != "" {
			v.Again += "?" + f.Query
		}
	}
	return page{template: "error", Title: title, Data: v}
}

// canRetry reports whether the same request may succeed later: there were too many requests, or the server has failed.
func (f Failed) canRetry() bool { return f.Status >= http.StatusTooManyRequests }

// hasRefusedText reports whether the API refuses what the visitor typed into a form. A visitor can type an id only into the
// form of the check.
func (f Failed) hasRefusedText() bool {
	if f.Status != http.StatusBadRequest {
		return false
	}
	isTypedID := f.Param == "id" && f.Path == "/"
	return f.Param == "search" || f.Param == "q" || isTypedID
}

// describe says what happened, and what to do next.
func (f Failed) describe() (title, text string) {
	const unknown = " To nie znaczy, że tej osoby nie ma na liście."
	switch f.Status {
	case http.StatusBadRequest:
		return f.describeParameter()
	case http.StatusNotFound:
		if f.Path == "/wpis" || strings.HasPrefix(f.Path, "/wpis/") {
			return "Nie ma takiego wpisu", "Tego wpisu nie ma w rejestrze: mógł zostać usunięty. To nie jest zarzut wobec nikogo."
		}
		return "Nie ma takiej strony", "Pod tym adresem nic nie ma. Sprawdź, czy jest pełny."
	case http.StatusMethodNotAllowed:
		return "Tej strony nie można otworzyć w ten sposób", "Strony rejestru można tylko czytać."
	case http.StatusTooManyRequests:
		return "Za dużo zapytań naraz", "Odczekaj chwilę i spróbuj ponownie." + unknown
	case http.StatusServiceUnavailable:
		if f.Empty {
			return "Rejestr jest pusty", "Nie ma w nim jeszcze żadnego wpisu, więc niczego nie da się sprawdzić. To nie znaczy, że można zaufać."
		}
		return strings.TrimSuffix(f.Text, "."), "Nie możemy teraz odpowiedzieć." + unknown
	}

	return "Coś się u nas zepsuło", "To nie Twoja wina. Spróbuj ponownie za chwilę."
}

// describeParameter explains a bad parameter.
func (f Failed) describeParameter() (title, text string) {
	const badAddress = "Nieprawidłowy adres strony"
	switch f.Param {
	case "search", "q":
		// The check takes longer texts, so a text that the check refuses is wrong in another way.
		isCheck := f.Path == "/"
		if !isCheck && utf8.RuneCountInString(strings.TrimSpace(f.Search)) > bounds.MaxSearch {
			return "Za długi tekst", "Wpisz najwyżej " + formatNumber(bounds.MaxSearch) + " znaków."
		}
		return "Tego tekstu nie da się wyszukać", "Wpisz zwykły tekst."
	case "id":
		return badAddress, "ID może mieć najwyżej " + forms{"znak", "znaki", "znaków"}.count(bounds.MaxID) + ". Wklej samo ID albo link do profilu."
	case "skip":
		return badAddress, "Nie ma tylu stron. Zawęź listę wyszukiwaniem albo filtrem."
	case "query":
		return badAddress, "Adres strony jest uszkodzony albo za długi. Wróć i wpisz krótszy tekst."
	}

	return badAddress, "Wróć i wybierz ustawienie jeszcze raz."
}
