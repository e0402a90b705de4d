package site

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"example.org/registry/httpapi/internal/bounds"
)

// Failure is the content of an error page.
type Failure struct {
	Title string
	Text  string // what happened
	Hint  string // what to do
	Again string // the page's own address, where asking again can help
	Stop  string // the same without reloading, where the browser reloads the page by itself

	Form  string   // action of the search form, if there is one
	Words bool     // the form is for ranked search
	Asked string   // the text in the form
	Found []string // ids and names in a text that is too long, to be checked separately
}

// Failed is a failed request. Status and Text are those of the API.
type Failed struct {
	Status int
	Text   string
	Param  string // the parameter that caused it, or ""
	Path   string // of the page
	Search string // what was searched, if anything was
	Query  string // of the address, as it was sent
	Again  bool   // the browser reloads the page by itself
}

// FailureOf returns the page for a failure.
func FailureOf(failed Failed) Page {
	f := Failure{Text: failed.Text}
	switch failed.Status {
	case http.StatusBadRequest:
		f.Title, f.Text = "Nieprawidłowy adres strony", paramHint(failed.Param)
		if failed.Param == "id" && failed.Path == "/" {
			f.Form, f.Asked = "/", validText(failed.Search)
		}
		if failed.Param == "search" || failed.Param == "q" {
			most := bounds.MaxSearch
			if failed.Path == "/" {
				most = bounds.MaxValue
			}
			f.Title, f.Text = "Tego tekstu nie da się wyszukać", "Wpisz zwykły tekst, najwyżej "+number(most)+" znaków."
			if utf8.RuneCountInString(strings.TrimSpace(failed.Search)) > most {
				f.Title, f.Text = "Za długi tekst", "Wpisz najwyżej "+number(most)+" znaków."
				f.Found = within(validText(failed.Search))
			}
			f.Form, f.Words, f.Asked = failed.Path, failed.Param == "q", validText(failed.Search)
		}
	case http.StatusNotFound:
		f.Title, f.Text = "Nie ma takiej strony", "Pod tym adresem nic nie ma. Sprawdź, czy jest pełny."
		if failed.Path == "/wpis" || strings.HasPrefix(failed.Path, "/wpis/") {
			f.Title, f.Text = "Nie ma takiego wpisu", "Tego wpisu nie ma w rejestrze: mógł zostać usunięty. To nie jest zarzut wobec nikogo."
		}
	case http.StatusMethodNotAllowed:
		f.Title, f.Hint = "Tej strony nie można otworzyć w ten sposób", "Strony rejestru można tylko czytać."
	case http.StatusTooManyRequests:
		f.Title, f.Text = "Za dużo zapytań naraz", "Odczekaj chwilę i spróbuj ponownie. To nie znaczy, że tej osoby nie ma na liście."
		f.keep(&failed)
	case http.StatusServiceUnavailable:
		f.Title = strings.TrimSuffix(failed.Text, ".")
		f.Text = "Wczytujemy jeszcze dane, więc nie możemy odpowiedzieć. To nie znaczy, że tej osoby nie ma na liście."
		if failed.Text == busy {
			f.Text = "Za dużo osób pyta naraz, więc nie możemy teraz odpowiedzieć. To nie znaczy, że tej osoby nie ma na liście."
		}
		f.keep(&failed)
	default:
		f.Title, f.Hint = "Coś się u nas zepsuło", "To nie Twoja wina. Spróbuj ponownie za chwilę."
		f.keep(&failed)
	}
	return Page{Title: f.Title, Data: f, Finds: f.Form != ""}
}

// StopParam is the parameter of an address whose page does not reload itself.
const StopParam = "odswiezanie"

// keep keeps what was asked: the address, and on the person check the text in its field.
func (f *Failure) keep(failed *Failed) {
	f.Again = failed.Path
	stop := failed.Path + "?"
	if failed.Query != "" {
		f.Again += "?" + failed.Query
		stop = f.Again + "&"
	}
	if failed.Again {
		f.Stop = stop + StopParam + "=nie"
	}
	if failed.Path == "/" && failed.Search != "" {
		f.Form, f.Asked = "/", validText(failed.Search)
	}
}

// busy is the API's text for work that is refused instead of queued (httpapi/CONTRACT.md#overload).
const busy = "Serwer jest przeciążony."

// maxWithin is how many ids and names of a long text are offered.
const maxWithin = 12

var (
	longDigits = regexp.MustCompile(`(?:^|[^0-9])([0-9]{15,20})(?:[^0-9]|$)`)
	atName     = regexp.MustCompile(`@([\pL\pN_][\pL\pN_.\-]{1,31})`)
)

// within returns the ids and the @names of a long text, the ids first.
func within(text string) (found []string) {
	add := func(one string) {
		if len(found) < maxWithin && !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	for _, id := range longDigits.FindAllStringSubmatch(text, -1) {
		add(id[1])
	}
	for _, name := range atName.FindAllStringSubmatch(text, -1) {
		if !longDigits.MatchString(name[1]) {
			add(strings.TrimRight(name[1], ".-"))
		}
	}
	return found
}

// validText returns the part of a text that is valid in a field, in full length.
func validText(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

// paramHint returns the rules of a parameter in plain Polish.
func paramHint(param string) string {
	switch param {
	case "id":
		return "ID może mieć najwyżej " + forms{"znak", "znaki", "znaków"}.count(bounds.MaxID) + ". Wklej samo ID albo link do profilu."
	case "skip":
		return "Nie ma tylu stron. Zawęź listę wyszukiwaniem albo filtrem."
	case "query":
		return "Adres strony jest uszkodzony albo za długi. Wróć i wpisz krótszy tekst."
	}
	return "Wróć i wybierz ustawienie jeszcze raz."
}
