package site

import (
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// verdictView is the verdict in words. Chats show the title, too, so the title has no person's name.
type verdictView struct {
	Value verdict.Value
	Class string // of the style: scam, risk, legit, name or none
	Title string
	Whose string // the name of the trusted person whose id was typed, shown after Title
	Text  string
}

// verdictWords has the words of each value and reason. An accusation is not here: it has the words of its grade.
var verdictWords = map[valueAndReason]verdictView{
	{verdict.Trusted, verdict.ByID}: {Class: "legit", Title: "To ID osoby zaufanej", Text: grades[trusted].Meaning},
	{verdict.TrustedName, verdict.ByName}: {Class: "name", Title: "Sprawdź ID: taką nazwę ma osoba zaufana",
		Text: "Nazwę może przyjąć każdy, także oszust. Tylko po ID poznasz, czy to konto tej osoby."},
	{verdict.Caution, verdict.Shared}: {Class: "risk", Title: "Ostrożnie! Tę nazwę mają i osoby zgłoszone, i zaufane",
		Text: "Z kim rozmawiasz, rozstrzyga dopiero ID."},
	{verdict.Caution, verdict.Beside}: {Class: "risk", Title: "Ostrożnie! Sprawdź samo ID",
		Text: "Jest tu ID z listy zaufanych, ale nie samo. Taki tekst mógł napisać ktoś inny. Skopiuj ID z profilu osoby, z którą rozmawiasz, i sprawdź je bez reszty tekstu."},
	{verdict.Caution, verdict.OtherID}: {Class: "risk", Title: "Ostrożnie! Nazwa jest w rejestrze, a tego ID nie ma",
		Text: "Tego ID nie ma na żadnej liście, a wpis o takiej nazwie ma inne ID. Może to być ktoś inny, nowe konto tej samej osoby albo ktoś, kto się podszywa."},
	{verdict.Caution, verdict.Alike}: {Class: "risk", Title: "Ostrożnie! Ta nazwa przypomina nazwę z " + gravestList,
		Text: "To nie jest zapisane dokładnie tak samo. Porównaj nazwy litera po literze, a najlepiej porównaj ID."},
	{verdict.Caution, verdict.InText}: {Class: "risk", Title: "Ostrożnie! Coś w tym tekście jest z " + gravestList,
		Text: "Niżej widać co. Tę samą nazwę może mieć ktoś inny: sprawdź samo ID osoby, z którą rozmawiasz."},
	{verdict.None, verdict.ByID}: {Class: "none", Title: "Nie ma na żadnej liście", Text: "Nie mamy wpisu o tym ID. To nie znaczy, że można zaufać."},
	{verdict.Unchecked, verdict.OneDigitOff}: {Class: "none", Title: "Czy na pewno to ID?",
		Text: "Tego ID nie ma na żadnej liście, ale jest prawie takie samo jak jedno z rejestru: różni się jedną cyfrą. Skopiuj ID jeszcze raz z profilu."},
	{verdict.Unchecked, verdict.Nothing}: {Class: "none", Title: "Tego nie możemy potwierdzić. Sprawdź ID",
		Text: "Nie rozpoznajemy tu nikogo z rejestru, ale to nie znaczy, że można zaufać: nazwę każdy może zmienić. Wklej samo ID konta albo serwera. " +
			"Telefonów, numerów kart i kont, adresów stron i zaproszeń rejestr nie sprawdza."},
}

type valueAndReason struct {
	value  verdict.Value
	reason verdict.Reason
}

// gravestList stands for the list of the gravest finding in a title of verdictWords.
const gravestList = "{list}"

// describeVerdict puts a verdict into words.
func describeVerdict(v *verdict.Verdict) verdictView {
	view := verdictWords[valueAndReason{v.Value, v.Reason}]
	view.Value = v.Value

	switch v.Value {
	case verdict.Accused, verdict.Risk:
		g := grades[gravestOf(v.Rows)]
		view.Class = g.Class
		view.Title = describeListed(v.Reason, v.Rows)
		view.Text = g.Meaning
		if v.Reason == verdict.ByName {
			view.Text += " Porównaj ID: tę samą nazwę może mieć ktoś inny."
		}
	case verdict.Trusted:
		view.Whose = namesOf(v.Rows)
	case verdict.Caution:
		gravest := ungraded
		for _, f := range v.Findings {
			gravest = min(gravest, gravestOf(f.Rows))
		}
		view.Title = strings.ReplaceAll(view.Title, gravestList, grades[gravest].fromList)
		if v.Reason == verdict.Alike && gravest == trusted {
			view.Title = "Ostrożnie! Ta nazwa tylko przypomina nazwę osoby zaufanej"
		}
	}
	return view
}

// describeListed says which list the entries of rows are on. They were found by their id or by their name: reason says which.
// Chats show the sentence, so it has no person's name.
func describeListed(reason verdict.Reason, rows []*readmodel.Row) string {
	g := grades[gravestOf(rows)]
	hasOtherID := func(r *readmodel.Row) bool { return r.ChatID() != rows[0].ChatID() }
	isPerson := func(r *readmodel.Row) bool { return r.List() != events.Servers }
	onlyServers := !slices.ContainsFunc(rows, isPerson)

	if reason == verdict.ByID {
		if slices.ContainsFunc(rows, hasOtherID) {
			return g.call + "W tym tekście są ID z rejestru, także z " + g.fromList
		}
		if onlyServers {
			return g.call + "Ten serwer jest na " + g.onList
		}
		return g.call + "To konto jest na " + g.onList
	}

	if len(rows) > 1 {
		return g.call + "Na " + g.onList + " są wpisy o tej nazwie"
	}
	if onlyServers {
		return g.call + "Na " + g.onList + " jest serwer o tej nazwie"
	}
	return g.call + "Na " + g.onList + " jest konto o tej nazwie"
}

// namesOf returns the names of entries, each once.
func namesOf(rows []*readmodel.Row) string {
	var names []string
	for _, r := range rows {
		if name := shownName(r.Name()); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// describeFinding says which list one part of the text is on.
func describeFinding(f *verdict.Finding) string {
	gravest := gravestOf(f.Rows)
	if gravest == ungraded {
		return "nie ma na żadnej liście"
	}

	on := " na " + grades[gravest].onList
	switch f.Kind {
	case verdict.ID:
		return "takie ID jest" + on
	case verdict.Number:
		return "taki numer ma wpis" + on
	}

	isExact := func(r *readmodel.Row) bool { return lookalike.Literal(r.Name()) == lookalike.Literal(f.Text) }
	if slices.ContainsFunc(f.Rows, isExact) {
		return "taka nazwa jest" + on
	}
	return "podobna nazwa jest" + on
}
