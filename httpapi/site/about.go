package site

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxAbout bounds the Markdown of the page about the registry in bytes, maxAboutHTML its HTML.
const (
	MaxAbout     = 32 << 10
	maxAboutHTML = MaxPage - 22_000
)

//go:embed about.md
var defaultAbout string

// aboutView is the data of about.html.
type aboutView struct {
	Before   template.HTML
	Sections []aboutSection
	Record   *recordView // nil until it is known
}

// Record is the registry's own record.
type Record struct {
	Reports          Reports   // and delistings
	OldestUnverified time.Time // zero if none is pending
}

// recordView is the record as about.html shows it.
type recordView struct {
	Chart   chart
	Oldest  time.Time
	Waiting string // how long the oldest report has been pending
}

// aboutSection is the content below a level-two heading, in the form of an advice.
type aboutSection struct {
	Title string
	advice
}

// CheckAbout rejects a text that cannot be the page about the registry (httpapi/CONTRACT.md#about).
// If empty, it is the default one.
func CheckAbout(markdown string) error {
	_, err := readAbout(markdown)
	return err
}

// readAbout splits a text by its headings and renders it.
func readAbout(markdown string) (v aboutView, err error) {
	if markdown == "" {
		markdown = defaultAbout
	}
	if err := checkMarkdown(markdown, MaxAbout); err != nil {
		return v, err
	}
	policy := newPolicy("tel:")
	before, sections := cutAt(markdown, "## ")
	v.Before = renderSafely(policy, before)
	size := len(v.Before)
	for _, s := range sections {
		text, n := renderFolded(policy, s.text)
		size += len(s.title) + n
		v.Sections = append(v.Sections, aboutSection{s.title, text})
	}
	if size > maxAboutHTML {
		return v, fmt.Errorf("makes %d bytes of HTML; at most %d fit", size, maxAboutHTML)
	}
	return v, nil
}

// checkMarkdown rejects a text that is not an operator's Markdown.
func checkMarkdown(markdown string, limit int) error {
	switch {
	case len(markdown) > limit:
		return fmt.Errorf("must have at most %d bytes", limit)
	case !utf8.ValidString(markdown) || strings.Contains(markdown, "\x00"):
		return errors.New("must be UTF-8 text")
	case strings.TrimSpace(markdown) == "":
		return errors.New("must not be blank")
	}
	return nil
}

// AboutPath is the path of the page about the registry.
const AboutPath = "/o-rejestrze"

// About appends the page about the registry: who runs it, what it stores, what the accused can do,
// and its own record at the time now. A nil record is omitted: the rest must be readable without
// the data.
func (s *Site) About(dst []byte, r *Record, now time.Time) ([]byte, error) {
	v := s.about
	if r != nil {
		v.Record = &recordView{Chart: newChart("Zgłoszenia i usunięcia w ostatnich 12 miesiącach", r.Reports, lowChart), Oldest: r.OldestUnverified}
		v.Record.Waiting = forms{"dzień", "dni", "dni"}.count(int(max(0, now.Sub(r.OldestUnverified)) / (24 * time.Hour)))
	}
	return s.Append(dst, "about", Page{Title: "O rejestrze", Path: AboutPath, Canonical: AboutPath, Data: v,
		About: "Kto prowadzi rejestr, skąd są wpisy, co rejestr przechowuje i jak się odwołać."})
}
