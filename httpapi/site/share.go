package site

import (
	"net/url"
	"strings"

	"example.org/registry/events"
	"example.org/registry/httpapi/verdict"
)

// Share is the preview that a chat shows next to a link, as Open Graph tags (https://ogp.me). Chats
// keep it after an entry is delisted, and people see it without having opened the page. So it never
// has a name, and only the last digits of an id.
type Share struct {
	Title, About string
	Picture      string // asset, 1200 by 630 pixels
	Color        string // of the bar next to the preview; empty for the brand's
}

// warning is the content of a button that copies it for a chat: a text, and a link to the current
// state. It has no name either: a name may be chosen to ping people, or to be a link.
type warning struct{ Text, Link string }

// shareOf returns the preview of a verdict. of is the entry that it is about, or nil if there is
// not exactly one.
func shareOf(value verdict.Value, of *single) Share {
	if value == verdict.Caution { // about several entries, or none for certain
		of = nil
	}
	s := Share{Title: spoken(value, of), Picture: "share-" + string(value) + ".png", Color: colorOf(value)}
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

// spoken returns a verdict in words, without a name.
func spoken(value verdict.Value, of *single) string {
	switch value {
	case verdict.Accused, verdict.Risk:
		class := looks(value)
		if of == nil {
			return callOf(class) + "Wynik: na " + listOf(class)
		}
		return onList(class, of.List == events.Servers)
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

// warningOf returns the warning of a verdict, or nil if it is no warning. link is its address.
func warningOf(value verdict.Value, of *single, link string) *warning {
	switch value {
	case verdict.Accused, verdict.Risk, verdict.Caution:
	default:
		return nil
	}
	w := warning{Text: spoken(value, of) + ".", Link: link}
	if of != nil && value != verdict.Caution {
		w.Text += " ID: " + of.ChatID + "."
		w.Link = of.Path()
	}
	w.Text += " Porównaj ID, zanim zapłacisz:"
	return &w
}

// checkLink returns the address of a check.
func checkLink(asked string) string { return "/?" + url.Values{"search": {asked}}.Encode() }

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
