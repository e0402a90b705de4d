package site

import (
	"strings"

	"example.org/registry/events"
)

// verdict is the plain answer.
type verdict struct {
	Class string // of its look
	Title string
	Text  string
}

// verdictOf says what was found, for somebody who reads nothing else. Only what was asked for exactly
// decides it. There may be more of that than was found: a check ends after so many.
func verdictOf(exact, partial []match, byID, more bool) verdict {
	if len(exact) == 0 {
		return nobody(partial, byID)
	}
	v := gravest(exact)
	if len(exact) > 1 {
		all := forms{"Pasuje", "Pasują", "Pasuje"}.of(len(exact)) + " " + entries().count(len(exact)) + ": " + tally(exact) + "."
		if more {
			all = "Pasuje co najmniej " + entries().count(len(exact)) + ", wśród nich " + tally(exact) + "."
		}
		if v.Class != "scam" {
			all += " " + v.Text
		}
		v.Text = all
	}
	if !byID {
		v.Text += " Nazwy się powtarzają i łatwo je skopiować: porównaj identyfikator konta."
	}
	return v
}

// nobody is the verdict where nothing is exactly what was asked for.
func nobody(partial []match, byID bool) verdict {
	switch {
	case len(partial) > 0:
		return verdict{"part", "Nie ma dokładnie takiej nazwy", "Są wpisy, których nazwa lub identyfikator zawiera ten tekst. To mogą być inne osoby: porównaj identyfikator."}
	case byID:
		return verdict{"none", "Nikogo nie znaleziono", "Na żadnej liście nie ma nikogo o takim identyfikatorze."}
	}
	return verdict{"none", "Nikogo nie znaleziono", "Na żadnej liście nie ma nikogo o takiej nazwie ani o takim identyfikatorze."}
}

// gravest is the verdict by the worst of the matches.
func gravest(exact []match) verdict {
	switch strongest(exact) {
	case "scam":
		return verdict{"scam", "Uwaga: jest " + where(exact, "scam", "na liście oszustów", "na liście serwerów oszustów"), "Zgłoszenie zweryfikowano."}
	case "risk":
		return verdict{"risk", "Ostrożnie: jest " + where(exact, "risk", "na liście ryzyka", "na liście ryzyka (serwer)"),
			"Jest zgłoszenie, ale nikt go jeszcze nie zweryfikował. Może się okazać niesłuszne."}
	}
	return verdict{"legit", "Jest na liście zaufanych", "Oszuści chętnie podszywają się pod osoby zaufane."}
}

// tally says how many matches there are of each class.
func tally(found []match) string {
	n := map[string]int{}
	for _, m := range found {
		n[class(m.list, m.row.Verified())]++
	}
	var said []string
	for _, kind := range []struct {
		class string
		words forms
	}{
		{"scam", forms{"zweryfikowane oszustwo", "zweryfikowane oszustwa", "zweryfikowanych oszustw"}},
		{"risk", forms{"niezweryfikowane zgłoszenie", "niezweryfikowane zgłoszenia", "niezweryfikowanych zgłoszeń"}},
		{"legit", forms{"zaufana osoba", "zaufane osoby", "zaufanych osób"}},
	} {
		if n[kind.class] > 0 {
			said = append(said, kind.words.count(n[kind.class]))
		}
	}
	return strings.Join(said, ", ")
}

// strongest is the class of the gravest match; empty when there is none.
func strongest(found []match) string {
	for _, c := range []string{"scam", "risk", "legit"} {
		for _, m := range found {
			if class(m.list, m.row.Verified()) == c {
				return c
			}
		}
	}
	return ""
}

// where says on which of the accusing lists the matches of a class are.
func where(found []match, c, scammers, servers string) string {
	for _, m := range found {
		if m.list == events.Scammers && class(m.list, m.row.Verified()) == c {
			return scammers
		}
	}
	return servers
}
