package site

import (
	"net/url"

	"example.org/registry/events"
	"example.org/registry/httpapi/verdict"
)

// Share is what a chat shows beside a link to a page, as Open Graph tags (https://ogp.me). Chats keep
// it after an entry is delisted, and people see it without having opened the page. So it never has a
// name, and of an id the last digits.
type Share struct {
	Title, About string
	Picture      string // asset, 1200 by 630 pixels
	Color        string // of the bar beside the preview; empty: the brand's
}

// warning is what a button copies for a chat: a text, and a link that makes it current. It has no
// name either: a name may be chosen to ping people, or to be a link.
type warning struct{ Text, Link string }

// shareOf is the preview of a verdict. of is whom it is about, nil where that is not one entry.
func shareOf(value verdict.Value, of *single) Share {
	if value == verdict.Caution { // about several, or nobody for certain
		of = nil
	}
	s := Share{Title: spoken(value, of), Picture: "share-" + string(value) + ".png", Color: colorOf(value)}
	if of == nil {
		s.About = "Otwórz, żeby zobaczyć wynik. Zawsze porównaj ID konta."
		return s
	}
	return *s.describe(of.entry)
}

// describe says by which digits to know an entry, and since when it is there.
func (s *Share) describe(e *entry) *Share {
	s.About = e.When() + " " + day(e.Reported) + ". Porównaj całe ID na stronie."
	if digits := lastDigits(e.ChatID); digits != "" {
		s.About = "ID kończy się na " + digits + ". " + s.About
	}
	return s
}

// spoken is a verdict in words that name nobody.
func spoken(value verdict.Value, of *single) string {
	switch value {
	case verdict.Accused, verdict.Risk, verdict.Trusted:
		class := looks(value)
		if of == nil {
			return callOf(class) + "Wynik: na " + listOf(class)
		}
		return onList(class, of.List == events.Servers)
	case verdict.TrustedName:
		return "Taką nazwę ma osoba zaufana: sprawdź ID"
	case verdict.Caution:
		return "Ostrożnie! Coś się tu nie zgadza"
	case verdict.Unchecked:
		return "Tego nie da się tu sprawdzić"
	}
	return "Nie ma na żadnej liście. To nie znaczy, że można zaufać"
}

// warningOf is the warning of a verdict, nil where it warns of nobody. link is its address.
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

// checkLink is the address of a check.
func checkLink(asked string) string { return "/?" + url.Values{"search": {asked}}.Encode() }

// lastDigits returns the end of an id by which its owner's friends know it, and by which a search
// finds nobody. Shorter ids have none.
func lastDigits(id string) string {
	if len(id) < 12 || !events.IsID(id) {
		return ""
	}
	return "…" + id[len(id)-4:]
}

// colorOf is the color of a verdict's banner, which chats draw beside a preview.
func colorOf(value verdict.Value) string {
	switch looks(value) {
	case "scam":
		return "#a1141d"
	case "risk":
		return "#7d4700"
	case "legit":
		return "#11603a"
	case "name":
		return "#1f4468"
	}
	return "#42505f"
}
