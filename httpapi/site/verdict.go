package site

import (
	"slices"
	"strings"

	"example.org/registry/events"
	"example.org/registry/httpapi/verdict"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/lookalike"
)

// verdictView is the verdict in words. Its title is shown in chats too, so it has no name.
type verdictView struct {
	Value verdict.Value
	Class string // of its look: scam, risk, legit, name or none
	Title string
	Whose string // the name of the trusted person whose id was typed, after Title
	Text  string
}

// looks returns the style class of a value.
func looks(v verdict.Value) string {
	switch v {
	case verdict.Accused:
		return "scam"
	case verdict.Risk, verdict.Caution:
		return "risk"
	case verdict.Trusted:
		return "legit"
	case verdict.TrustedName:
		return "name"
	}
	return "none"
}

// wording puts a verdict into words.
func wording(v *verdict.Verdict) verdictView {
	a := verdictView{Value: v.Value, Class: looks(v.Value)}
	switch v.Value {
	case verdict.Accused, verdict.Risk:
		a.Title, a.Text = listed(v.Value, v.Reason == verdict.ByID, v.Rows), gradeNamed(a.Class).Meaning
		if v.Reason == verdict.ByName {
			a.Text += " Porównaj ID: tę samą nazwę może mieć ktoś inny."
		}
	case verdict.Trusted:
		a.Title, a.Whose, a.Text = "To ID osoby zaufanej", namesOf(v.Rows), gradeNamed("legit").Meaning
	case verdict.TrustedName:
		a.Title = "Sprawdź ID: taką nazwę ma osoba zaufana"
		a.Text = "Nazwę może przyjąć każdy, także oszust. Tylko po ID poznasz, czy to konto tej osoby."
	case verdict.Caution:
		a.Title, a.Text = careful(v)
	case verdict.None:
		a.Title, a.Text = "Nie ma na żadnej liście", "Nie mamy wpisu o tym ID. To nie znaczy, że można zaufać."
	default:
		a.Title = "Tego nie możemy potwierdzić. Sprawdź ID"
		a.Text = "Nie rozpoznajemy tu nikogo z rejestru, ale to nie znaczy, że można zaufać: nazwę każdy może zmienić. Wklej samo ID konta albo serwera. " +
			"Telefonów, numerów kart i kont, adresów stron i zaproszeń rejestr nie sprawdza."
		if v.Reason == verdict.OneDigitOff {
			a.Title = "Czy na pewno to ID?"
			a.Text = "Tego ID nie ma na żadnej liście, ale jest prawie takie samo jak jedno z rejestru: różni się jedną cyfrą. Skopiuj ID jeszcze raz z profilu."
		}
	}
	return a
}

// listed says that accused are on a list, without their names.
func listed(value verdict.Value, byID bool, rows []*readmodel.Row) string {
	g := gradeNamed(looks(value))
	one, servers := "konto", !slices.ContainsFunc(rows, func(r *readmodel.Row) bool { return r.List() != events.Servers })
	if servers {
		one = "serwer"
	}
	switch {
	case byID && !slices.ContainsFunc(rows, func(r *readmodel.Row) bool { return r.ChatID() != rows[0].ChatID() }):
		return g.onList(servers)
	case byID:
		return g.call + "W tym tekście są ID z rejestru, także z " + g.from
	case len(rows) == 1:
		return g.call + "Na " + g.on + " jest " + one + " o tej nazwie"
	}
	return g.call + "Na " + g.on + " są wpisy o tej nazwie"
}

// onList says that the account or server of an id is on a list.
func (g grade) onList(server bool) string {
	if server {
		return g.call + "Ten serwer jest na " + g.on
	}
	return g.call + "To konto jest na " + g.on
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

// careful returns the words for a caution.
func careful(v *verdict.Verdict) (title, text string) {
	worst := ungraded
	for _, f := range v.Findings {
		worst = min(worst, gravest(f.Rows))
	}
	from := "rejestru"
	if worst < ungraded {
		from = grades()[worst].from
	}

	switch v.Reason {
	case verdict.Shared:
		return "Ostrożnie! Tę nazwę mają i osoby zgłoszone, i zaufane", "Z kim rozmawiasz, rozstrzyga dopiero ID."
	case verdict.Beside:
		return "Ostrożnie! Sprawdź samo ID",
			"Jest tu ID z listy zaufanych, ale nie samo. Taki tekst mógł napisać ktoś inny. Skopiuj ID z profilu osoby, z którą rozmawiasz, i sprawdź je bez reszty tekstu."
	case verdict.OtherID:
		return "Ostrożnie! Nazwa jest w rejestrze, a tego ID nie ma",
			"Tego ID nie ma na żadnej liście, a wpis o takiej nazwie ma inne ID. Może to być ktoś inny, nowe konto tej samej osoby albo ktoś, kto się podszywa."
	case verdict.Alike:
		title = "Ostrożnie! Ta nazwa przypomina nazwę z " + from
		if from == gradeNamed("legit").from {
			title = "Ostrożnie! Ta nazwa tylko przypomina nazwę osoby zaufanej"
		}
		return title, "To nie jest zapisane dokładnie tak samo. Porównaj nazwy litera po literze, a najlepiej porównaj ID."
	}
	return "Ostrożnie! Coś w tym tekście jest z " + from, "Niżej widać co. Tę samą nazwę może mieć ktoś inny: sprawdź samo ID osoby, z którą rozmawiasz."
}

// saysOf returns what a part of the text alone says.
func saysOf(f *verdict.Finding) string {
	worst := gravest(f.Rows)
	if worst == ungraded {
		return "nie ma na żadnej liście"
	}
	on := " na " + grades()[worst].on
	isExact := func(r *readmodel.Row) bool { return lookalike.Literal(r.Name()) == lookalike.Literal(f.Text) }
	switch {
	case f.Kind == verdict.ID:
		return "takie ID jest" + on
	case f.Kind == verdict.Number:
		return "taki numer ma wpis" + on
	case slices.ContainsFunc(f.Rows, isExact):
		return "taka nazwa jest" + on
	}
	return "podobna nazwa jest" + on
}
