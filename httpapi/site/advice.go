package site

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
)

// MaxAdvice bounds the Markdown of an advice in bytes, maxAdviceHTML the HTML for one verdict, and
// that of the emergency card.
const (
	MaxAdvice     = 32 << 10
	maxAdviceHTML = 8_000
)

//go:embed advice.md
var defaultAdvice string

// advice has the steps after one verdict.
type advice struct {
	Now    template.HTML
	Folded []fold
}

// fold is a part that opens when its title is clicked.
type fold struct {
	Title string
	Text  template.HTML
}

// adviceHeadings returns the level-two headings of an advice, with the class of their verdict;
// serverAdvice is for an accused server, confirmed or not, and paidAdvice for every verdict.
func adviceHeadings() map[string]string {
	return map[string]string{"Oszustwo": "scam", "Ryzyko": "risk", "Serwer": serverAdvice, "Zaufana osoba": "legit", "Brak wpisu": "none", paidHeading: paidAdvice}
}

const (
	serverAdvice = "server"
	paidAdvice   = "paid"
	paidHeading  = "Kto już zapłacił"
)

// adviceFor returns the advice after a verdict of that class, for a server or not. If a text has no
// part for servers, the part for persons applies.
func (s *Site) adviceFor(class string, server bool) *advice {
	if a, ok := s.advice[serverAdvice]; ok && server && (class == "scam" || class == "risk") {
		return &a
	}
	if class == "name" {
		class = "legit"
	}
	if a, ok := s.advice[class]; ok {
		return &a
	}
	return nil
}

// CheckAdvice rejects a text that cannot be the advice of a site (httpapi/CONTRACT.md#advice). If
// empty, it is the default one.
func CheckAdvice(markdown string) error {
	_, err := readAdvice(markdown)
	return err
}

// readAdvice splits an advice by its headings and renders it, by class of verdict.
func readAdvice(markdown string) (map[string]advice, error) {
	if markdown == "" {
		markdown = defaultAdvice
	}
	if err := checkMarkdown(markdown, MaxAdvice); err != nil {
		return nil, err
	}
	intro, sections := cutAt(markdown, "## ")
	headings := adviceHeadings()
	known := func(s adviceSection) bool { return headings[s.title] != "" }
	if !slices.ContainsFunc(sections, known) { // one advice for all verdicts
		intro, sections = markdown, nil
		for title := range headings {
			if title != paidHeading {
				sections = append(sections, adviceSection{title: title})
			}
		}
	}
	if !slices.ContainsFunc(sections, func(s adviceSection) bool { return s.title == paidHeading }) {
		_, own := cutAt(defaultAdvice, "## ")
		sections = append(sections, own[slices.IndexFunc(own, func(s adviceSection) bool { return s.title == paidHeading })])
	}
	all := map[string]advice{}
	for _, section := range sections {
		class := headings[section.title]
		if class == "" {
			return nil, fmt.Errorf("has the heading %q; known are Oszustwo, Ryzyko, Serwer, Zaufana osoba, Brak wpisu and Kto już zapłacił", section.title)
		}
		text := intro + "\n" + section.text
		if class == paidAdvice {
			text = section.text
		}
		a, size := renderFolded(text)
		if size > maxAdviceHTML {
			return nil, fmt.Errorf("makes %d bytes of HTML below %q; at most %d fit", size, section.title, maxAdviceHTML)
		}
		all[class] = a
	}
	return all, nil
}

// adviceSection is the content below a heading.
type adviceSection struct{ title, text string }

// cutAt splits a text at the lines that begin with a prefix. Lines within fenced code are no
// headings.
func cutAt(text, prefix string) (before string, sections []adviceSection) {
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
		}
		title, heading := strings.CutPrefix(line, prefix)
		switch {
		case heading && !fenced:
			sections = append(sections, adviceSection{title: strings.TrimSpace(title)})
		case len(sections) > 0:
			sections[len(sections)-1].text += line
		default:
			before += line
		}
	}
	return before, sections
}

// renderFolded renders a text, and below it the parts that its level-three headings begin.
func renderFolded(markdown string) (a advice, size int) {
	now, folded := cutAt(markdown, "### ")
	a.Now = render(now)
	size = len(a.Now)
	for _, f := range folded {
		a.Folded = append(a.Folded, fold{f.title, render(f.text)})
		size += len(f.title) + len(a.Folded[len(a.Folded)-1].Text)
	}
	return a, size
}

// render renders an operator's Markdown. goldmark omits HTML and the addresses of scripts.
func render(markdown string) template.HTML {
	var out bytes.Buffer
	_ = goldmark.Convert([]byte(markdown), &out) // a buffer accepts everything
	return shown(out.String())
}
