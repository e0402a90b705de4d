package site

import (
	"slices"
	"strings"

	"example.org/registry/events"
)

// verdict is the answer in a sentence.
type verdict struct {
	Class string // of its look: scam, risk, legit or none
	Title string
	Text  string
}

// verdictOf says what was found to somebody who reads nothing else. Only the matches of the asked id or, where there is
// none, of exactly the asked name decide it: a hit by name is a fact about the name, not about a person. more says that
// there may be more of them than were found.
func verdictOf(main []match, byID, more bool) verdict {
	v := verdict{Class: class(main[0].list, main[0].row.Verified())}
	same := slices.DeleteFunc(slices.Clone(main), func(m match) bool { return class(m.list, m.row.Verified()) != v.Class })
	v.Title = titleOf(v.Class, same, byID)
	if len(main) == 1 {
		v.Text = meaning(main[0].list, main[0].row.Verified())
	} else {
		v.Text = "Znaleziono " + entries().count(len(main)) + ": " + tally(main) + "."
		if more {
			v.Text = "Znaleziono co najmniej " + entries().count(len(main)) + ", wśród nich " + tally(main) + "."
		}
	}
	switch {
	case byID:
	case len(main) == 1:
		v.Text += " Porównaj ID: tę samą nazwę może mieć ktoś inny."
	default:
		v.Text += " Tę samą nazwę może mieć ktoś inny, a oszuści kopiują cudze nazwy. Porównaj ID konta."
	}
	return v
}

// titleOf is the heading. same are the matches of its class, the gravest.
func titleOf(class string, same []match, byID bool) string {
	list := map[string]string{"scam": "liście oszustów", "risk": "liście ryzyka", "legit": "liście zaufanych"}[class]
	noun := nounOf(same)
	if byID {
		this := "To konto"
		if noun == servers() {
			this = "Ten serwer"
		}
		call := map[string]string{"scam": "Uwaga! ", "risk": "Ostrożnie! "}[class]
		return call + this + " jest na " + list
	}
	verb := forms{"jest", "są", "jest"}.of(len(same))
	title := "na " + list + " " + verb + " " + noun.of(len(same)) + " o tej nazwie"
	if len(same) > 1 {
		title = "na " + list + " " + verb + " " + noun.count(len(same)) + " o tej nazwie"
	}
	if class == "risk" {
		return "Ostrożnie! N" + title[1:]
	}
	return "N" + title[1:]
}

func accounts() forms { return forms{"konto", "konta", "kont"} }
func servers() forms  { return forms{"serwer", "serwery", "serwerów"} }

// nounOf is what matches are called together.
func nounOf(found []match) forms {
	n := 0
	for _, m := range found {
		if m.list == events.Servers {
			n++
		}
	}
	switch n {
	case 0:
		return accounts()
	case len(found):
		return servers()
	}
	return entries()
}

// tally counts the matches of each class, in words.
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
		{"scam", forms{"potwierdzone oszustwo", "potwierdzone oszustwa", "potwierdzonych oszustw"}},
		{"risk", forms{"niesprawdzone zgłoszenie", "niesprawdzone zgłoszenia", "niesprawdzonych zgłoszeń"}},
		{"legit", forms{"zaufana osoba", "zaufane osoby", "zaufanych osób"}},
	} {
		if n[kind.class] > 0 {
			said = append(said, kind.words.count(n[kind.class]))
		}
	}
	if last := len(said) - 1; last > 0 {
		return strings.Join(said[:last], ", ") + " i " + said[last]
	}
	return strings.Join(said, "")
}
