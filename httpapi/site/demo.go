package site

import "net/url"

// Question is a text to try in a demonstration.
type Question struct{ Text, Asked string }

// Link returns the address of its answer.
func (q Question) Link() string { return "/?" + url.Values{"search": {q.Asked}}.Encode() }

// The paths of the stand-ins of a demonstration for the moderators' pages.
const (
	DemoProofsPath  = "/pokaz/dowody"
	DemoAppealPath  = "/pokaz/odwolanie"
	DemoReportsPath = "/pokaz/zgloszenie"
)

// standIn points to the stand-ins where no address is configured. Their addresses are paths, so they
// work on every device that the page itself has reached.
func (s *Site) standIn() {
	s.cfg.Proofs = true
	if s.cfg.AppealsURL == "" {
		s.appeals = Appeals{DemoAppealPath, "?nr=" + reportPlace}
	}
	if s.cfg.ReportURL == "" {
		s.cfg.ReportURL = DemoReportsPath
	}
}

// standInView is the data of demo.html.
type standInView struct {
	Title, Text string
	Number      string // of the report that it is about, which leads back; may be empty
}

// StandIn appends the stand-in with that path, about the report with that number, if any.
func (s *Site) StandIn(dst []byte, path, number string) ([]byte, error) {
	v := standInView{Number: number}
	switch path {
	case DemoProofsPath:
		v.Title, v.Text = "Dowody", "Tu moderacja pokazałaby zrzuty rozmów i potwierdzenia przelewów. W wersji pokazowej ich nie ma."
	case DemoAppealPath:
		v.Title, v.Text = "Odwołanie", "Tu moderacja przyjęłaby odwołanie: co się nie zgadza, zrzuty rozmowy i potwierdzenia. W wersji pokazowej nikt go nie czyta."
	default:
		v.Title, v.Text = "Zgłoszenie oszustwa", "Tu moderacja przyjęłaby zgłoszenie: ID konta, opis i zrzuty rozmowy. W wersji pokazowej nikt go nie czyta."
	}
	return s.Append(dst, "demo", Page{Title: v.Title, Data: v})
}
