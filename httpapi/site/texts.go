package site

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
)

// MaxText bounds an operator's text in bytes.
const MaxText = 256 << 10

//go:embed advice.md
var defaultAdvice string

//go:embed about.md
var defaultAbout string

// CheckText rejects what cannot be an operator's text: advice for somebody who has already paid, or the page about the
// registry.
func CheckText(markdown string) error {
	switch markdown = strings.TrimPrefix(markdown, byteOrderMark); {
	case !utf8.ValidString(markdown) || strings.Contains(markdown, "\x00"):
		return errors.New("must be UTF-8 text")
	case strings.TrimSpace(markdown) == "":
		return errors.New("must not be blank")
	}
	return nil
}

const byteOrderMark = "\ufeff"

// rendered returns the HTML of an operator's Markdown, or of the site's own if it is empty. goldmark omits HTML and the
// addresses of scripts. headings lowers its headings below the page's own.
func rendered(markdown, own string, headings *strings.Replacer) template.HTML {
	if markdown == "" {
		markdown = own
	}
	var out bytes.Buffer
	_ = goldmark.Convert([]byte(strings.TrimPrefix(markdown, byteOrderMark)), &out) // a buffer accepts everything
	return template.HTML(headings.Replace(out.String()))
}

// The headings of a text below the heading of a page, and below one of a part of it.
var (
	belowPage = strings.NewReplacer("<h1>", "<h2>", "</h1>", "</h2>")
	belowPart = strings.NewReplacer("<h1>", "<h3>", "</h1>", "</h3>", "<h2>", "<h3>", "</h2>", "</h3>")
)

// AboutPath is the path of the page about the registry.
const AboutPath = "/o-rejestrze"

// About appends the page about the registry: who runs it, what it stores, and what the accused can do. It needs no data.
func (s *Site) About(dst []byte) ([]byte, error) {
	return s.Append(dst, "about", Page{Title: "O rejestrze", Path: AboutPath, Canonical: AboutPath, Data: s.about,
		About: "Kto prowadzi rejestr, skąd są wpisy, co rejestr przechowuje i jak się odwołać."})
}
