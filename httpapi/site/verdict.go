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

// describeVerdict puts a verdict into words.
func describeVerdict(v *verdict.Verdict) verdictView {
	switch v.Value {
	case verdict.Accused, verdict.Risk:
		g := grades[gravestOf(v.Rows)]
		text := g.Meaning
		if v.Reason == verdict.ByName {
			text += " Porównaj ID: tę samą nazwę może mieć ktoś inny."
		}
		return verdictView{Value: v.Value, Class: g.Class, Title: describeListed(v.Reason, v.Rows), Text: text}
	case verdict.Trusted:
		return verdictView{Value: v.Value, Class: "legit", Title: "To ID osoby zaufanej", Whose: namesOf(v.Rows), Text: grades[trusted].Meaning}
	case verdict.TrustedName:
		return verdictView{Value: v.Value, Class: "name", Title: "Sprawdź ID: taką nazwę ma osoba zaufana",
			Text: "Nazwę może przyjąć każdy, także oszust. Tylko po ID poznasz, czy to konto tej osoby."}
	case verdict.Caution:
		title, text := describeCaution(v)
		return verdictView{Value: v.Value, Class: "risk", Title: title, Text: text}
	case verdict.None:
		return verdictView{Value: v.Value, Class: "none", Title: "Nie ma na żadnej liście", Text: "Nie mamy wpisu o tym ID. To nie znaczy, że można zaufać."}
	}

	// The remaining value is verdict.Unchecked, which has two reasons.
	if v.Reason == verdict.OneDigitOff {
		return verdictView{Value: v.Value, Class: "none", Title: "Czy na pewno to ID?",
			Text: "Tego ID nie ma na żadnej liście, ale jest prawie takie samo jak jedno z rejestru: różni się jedną cyfrą. Skopiuj ID jeszcze raz z profilu."}
	}
	return verdictView{Value: v.Value, Class: "none", Title: "Tego nie możemy potwierdzić. Sprawdź ID",
		Text: "Nie rozpoznajemy tu nikogo z rejestru, ale to nie znaczy, że można zaufać: nazwę każdy może zmienić. Wklej samo ID konta albo serwera. " +
			"Telefonów, numerów kart i kont, adresów stron i zaproszeń rejestr nie sprawdza."}
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

// describeCaution returns the words for a caution.
func describeCaution(v *verdict.Verdict) (title, text string) {
	gravest := ungraded
	for _, f := range v.Findings {
		gravest = min(gravest, gravestOf(f.Rows))
	}

	from := grades[gravest].fromList
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
		if gravest == trusted {
			title = "Ostrożnie! Ta nazwa tylko przypomina nazwę osoby zaufanej"
		}
		return title, "To nie jest zapisane dokładnie tak samo. Porównaj nazwy litera po literze, a najlepiej porównaj ID."
	}

	// The remaining reason is verdict.InText.
	return "Ostrożnie! Coś w tym tekście jest z " + from, "Niżej widać co. Tę samą nazwę może mieć ktoś inny: sprawdź samo ID osoby, z którą rozmawiasz."
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
