package site

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"example.org/registry/httpapi/internal/bounds"
)

// Failed is a failed request. Status and Text are the API's.
type Failed struct {
	Status int
	Text   string
	Empty  bool   // the registry has no entries yet
	Param  string // the parameter that caused it, or ""
	Path   string // of the page
	Search string // the searched text, if any
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

func (f Failed) page() (page, error) {
	title, text := f.describe()
	v := failureView{Text: text, Card: f.Status != http.StatusNotFound && f.Status != http.StatusMethodNotAllowed}

	// The typed text stays in the field. If asking again can help, the address is kept, too.
	canRetry := f.Status >= http.StatusTooManyRequests
	isCheck := f.Path == "/"
	isTyped := f.Param == "search" || f.Param == "q" || f.Param == "id" && isCheck
	isWrongText := f.Status == http.StatusBadRequest && isTyped
	if isWrongText || canRetry && isCheck && f.Search != "" {
		v.Form = f.Path
		v.Words = isWrongText && f.Param == "q"
		v.Asked = strings.ToValidUTF8(strings.ReplaceAll(f.Search, "\x00", ""), "")
	}

	if canRetry {
		v.Again = f.Path
		if f.Query != "" {
			v.Again += "?" + f.Query
		}
	}
	return page{template: "error", Title: title, Finds: v.Form != "", Data: v}, nil
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
		if utf8.RuneCountInString(strings.TrimSpace(f.Search)) > bounds.MaxSearch && f.Path != "/" {
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
