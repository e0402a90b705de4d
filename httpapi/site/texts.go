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

// CheckText returns an error if an operator's text cannot be shown. The text is advice for somebody who has already paid, or the
// page about the registry.
func CheckText(markdown string) error {
	if !utf8.ValidString(markdown) || strings.Contains(markdown, "\x00") {
		return errors.New("must be UTF-8 text")
	}
	if strings.TrimSpace(strings.TrimPrefix(markdown, byteOrderMark)) == "" {
		return errors.New("must not be blank")
	}
	return nil
}

const byteOrderMark = "\ufeff"

// renderText returns the HTML of an operator's Markdown or, if the operator gave none, of the site's own text. goldmark omits
// raw HTML and javascript: addresses. headings lowers the text's headings, so that they come under a heading of the page.
func renderText(markdown, own string, headings *strings.Replacer) template.HTML {
	if markdown == "" {
		markdown = own
	}
	// Convert fails only if it cannot write, and a buffer accepts everything.
	var out bytes.Buffer
	_ = goldmark.Convert([]byte(strings.TrimPrefix(markdown, byteOrderMark)), &out)
	return template.HTML(headings.Replace(out.String()))
}

// The two ways of lowering the headings of a text: under the h1 of a page, and under the h2 of a part of a page.
var (
	underPageHeading = strings.NewReplacer("<h1>", "<h2>", "</h1>", "</h2>")
	underPartHeading = strings.NewReplacer("<h1>", "<h3>", "</h1>", "</h3>", "<h2>", "<h3>", "</h2>", "</h3>")
)

// AboutPath is the path of the page about the registry.
const AboutPath = "/o-rejestrze"

// AboutPage is the page about the registry: who operates it, what data it stores, and how the accused can appeal.
type AboutPage struct{}

func (AboutPage) page() page {
	return page{template: "about", Title: "O rejestrze", Path: AboutPath, Canonical: AboutPath,
		About: "Kto prowadzi rejestr, skąd są wpisy, co rejestr przechowuje i jak się odwołać."}
}
