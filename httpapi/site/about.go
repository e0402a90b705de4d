package site

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"strings"
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
	before, sections := cutAt(markdown, "## ")
	v.Before = render(before)
	size := len(v.Before)
	for _, s := range sections {
		text, n := renderFolded(s.text)
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

// About appends the page about the registry: who runs it, what it stores, and what the accused can
// do. It needs no data.
func (s *Site) About(dst []byte) ([]byte, error) {
	return s.Append(dst, "about", Page{Title: "O rejestrze", Path: AboutPath, Canonical: AboutPath, Data: s.about,
		About: "Kto prowadzi rejestr, skąd są wpisy, co rejestr przechowuje i jak się odwołać."})
}
