package site

import (
	"html/template"
	"strings"
	"unicode/utf8"

	markdown "example.org/registry/readmodel/reason"
)

// beginning returns the part of a reason's HTML that an excerpt reads.
func beginning(reason string) string {
	if len(reason) <= maxRead {
		return reason
	}
	end := maxRead
	for !utf8.RuneStart(reason[end]) {
		end--
	}
	if tag := strings.LastIndexByte(reason[:end], '<'); tag > maxRead/2 {
		end = tag
	}
	return reason[:end]
}

// maxExcerpt bounds an excerpt in code points.
const maxExcerpt = 280

// excerpt returns the beginning of a reason as text on one line.
func excerpt(reason string) string {
	return shortened(strings.Join(strings.Fields(markdown.Text(beginning(reason))), " "), maxExcerpt)
}

// shortened returns the words of a text up to a length in code points.
func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	text = string(runes[:most])
	if space := strings.LastIndexByte(text, ' '); space > len(text)/2 {
		text = text[:space]
	}
	return strings.TrimRight(text, " ,.;:–-…") + "…"
}

// maxGist bounds a gist in code points.
const maxGist = 60

// gist returns the bold words that a reason begins with, else its beginning, in a line.
func gist(reason string) string {
	text := reason
	if bold, ok := strings.CutPrefix(beginning(reason), "<p><strong>"); ok {
		text, _, _ = strings.Cut(bold, "</strong>")
	}
	return strings.TrimRight(shortened(excerpt(text), maxGist), ".:")
}

// maxRead bounds beginning, in bytes: more than an excerpt of plain words takes, and little enough
// to read sixty reasons a page.
const maxRead = 6_400

// shown returns the HTML of a reason, or of an operator's text, for a page. Its headings become bold
// paragraphs, because the page's own headings are its outline. Nothing else changes: what a reason
// may contain is decided where it is rendered (package reason).
func shown(html string) template.HTML { return template.HTML(headings.Replace(html)) }

var headings = strings.NewReplacer(
	"<h1>", paragraph, "<h2>", paragraph, "<h3>", paragraph, "<h4>", paragraph, "<h5>", paragraph, "<h6>", paragraph,
	"</h1>", "</p>", "</h2>", "</p>", "</h3>", "</p>", "</h4>", "</p>", "</h5>", "</p>", "</h6>", "</p>")

const paragraph = `<p class="h">`
