package site

import (
	"bytes"
	"fmt"
	"html/template"

	"example.org/registry/readmodel"
)

// look is what similar.html shows of a name that only looks like the one asked for.
type look struct {
	readmodel.Public
	Status, Why, Link string
}

// similar renders the names that look alike into what room is left.
func (s *Site) similar(v *checkView, p *CheckPage, room int) error {
	var out bytes.Buffer
	for _, g := range p.Found.Similar {
		for _, r := range g.Rows {
			public, err := r.Public()
			if err != nil {
				return fmt.Errorf("site: %w", err)
			}
			before := out.Len()
			err = s.looks.Execute(&out, look{public, status(g.List, public.Verified), why(public.Name, p.Query.Search), entryLink(g.List, public.ChatID)})
			if err != nil {
				return fmt.Errorf("site: similar entry %s: %w", public.ID, err)
			}
			if out.Len() > room {
				out.Truncate(before)
				break
			}
		}
	}
	v.Similar = template.HTML(out.String())
	switch class := v.Verdict.Class; {
	case v.Similar == "":
	case class == "none":
		v.Verdict.Text += " Są jednak nazwy, które wyglądają podobnie: zobacz niżej."
	case class == "legit": // the green answer must not hide whoever poses as that person
		v.Verdict.Text += " Zgłoszono też kogoś o podobnej nazwie: zobacz niżej."
	}
	return nil
}
