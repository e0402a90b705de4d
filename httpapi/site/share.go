package site

import (
	"strings"

	"example.org/registry/events"
	"example.org/registry/httpapi/paste"
	"example.org/registry/httpapi/verdict"
)

// Share is the preview that a chat shows next to a link, as Open Graph tags (https://ogp.me). Chats
// keep it after an entry is delisted, and people see it without having opened the page. So it never
// has a name, and only the last digits of an id.
type Share struct {
	Title, About string
	Color        string // of the bar next to the preview; empty for the brand's
}

// warning is the content of a button that copies it for a chat: a text, and a link to the current
// state. It has no name either: a name may be chosen to ping people, or to be a link.
type warning struct{ Text, Link string }

// shareOf returns the preview of a verdict. of is the entry that it is about, or nil if there is
// not exactly one.
func shareOf(v *verdict.Verdict, of *single) Share {
	if v.Value == verdict.Caution { // about several entries, or none for certain
		of = nil
	}
	s := Share{Title: spoken(v.Value, v.Reason == verdict.ByID, of), Color: colorOf(v.Value)}
	if of == nil {
		s.About = "Otwórz, żeby zobaczyć wynik. Zawsze porównaj ID konta."
		return s
	}
	return *s.describe(of.entry)
}

// describe adds the digits that identify an entry, and since when it is listed.
func (s *Share) describe(e *entry) *Share {
	s.About = "Otwórz i porównaj całe ID: link niczego nie dowodzi."
	if e.Accused() {
		s.About = e.When() + " " + day(e.Reported) + ". Porównaj całe ID na stronie."
	}
	if digits := lastDigits(e.ChatID); digits != "" {
		s.About = "ID kończy się na " + digits + ". " + s.About
	}
	return s
}

// spoken returns a verdict in words, without a name. A name is anybody's, so a verdict by name speaks of
// no account for certain.
func spoken(value verdict.Value, byID bool, of *single) string {
	switch value {
	case verdict.Accused, verdict.Risk:
		g := gradeNamed(looks(value))
		switch {
		case of == nil:
			return g.call + "Wynik: na " + g.on
		case byID:
			return g.onList(of.Server())
		case of.Server():
			return g.call + "Na " + g.on + " jest serwer o tej nazwie"
		}
		return g.call + "Na " + g.on + " jest konto o tej nazwie"
	case verdict.Trusted:
		if of != nil {
			return strings.TrimSpace("Sprawdź ID " + lastDigits(of.ChatID))
		}
		return "Sprawdź ID"
	case verdict.TrustedName:
		return "Taką nazwę ma osoba zaufana: sprawdź ID"
	case verdict.Caution:
		return "Ostrożnie! Coś się tu nie zgadza"
	case verdict.Unchecked:
		return "Tego nie da się tu sprawdzić"
	}
	return "Nie ma na żadnej liście. To nie znaczy, że można zaufać"
}

// warningOf returns the warning of a verdict, or nil if it is no warning, or is about no single entry
// and no id: then there is no address without a name.
func warningOf(v *verdict.Verdict, of *single) *warning {
	if v.Value != verdict.Accused && v.Value != verdict.Risk {
		return nil
	}
	w := warning{Text: spoken(v.Value, v.Reason == verdict.ByID, of) + "."}
	id := ""
	for _, f := range v.Findings {
		if f.Value == v.Value && f.ID != "" {
			id = f.ID
			break
		}
	}
	switch {
	case of != nil:
		id = of.ChatID
		w.Link = of.Path()
	case id != "":
		w.Link = "/?id=" + id
	default:
		return nil
	}
	if paste.Digits(id) {
		w.Text += " ID: " + id + "."
	}
	w.Text += " Porównaj ID, zanim zapłacisz:"
	return &w
}

// lastDigits returns the end of an id by which its owner's friends recognize it, and which no
// search finds. For shorter ids it returns nothing.
func lastDigits(id string) string {
	if len(id) < 12 || !events.IsID(id) {
		return ""
	}
	return "…" + id[len(id)-4:]
}

// colorOf returns the color of a verdict's banner, which chats draw next to a preview.
func colorOf(value verdict.Value) string {
	switch looks(value) {
	case "scam":
		return "#a1141d"
	case "risk":
		return "#ffd000"
	case "legit", "name": // a chat is no place to vouch for anybody
		return "#1f4468"
	}
	return "#42505f"
}
