package site

import (
	"html/template"
	"strings"
	"unicode/utf8"

	markdown "example.org/registry/readmodel/reason"
)

const (
	maxExcerpt = 280   // code points
	maxGist    = 60    // code points
	maxRead    = 6_400 // bytes of HTML: more than an excerpt of plain words takes, and little enough to read sixty reasons a page
)

// makeExcerpt returns the beginning of a reason as text on one line.
func makeExcerpt(reason string) string {
	return shorten(strings.Join(strings.Fields(markdown.Text(cutHTML(reason))), " "), maxExcerpt)
}

// makeGist returns the bold words that a reason begins with, else its beginning, in a line.
func makeGist(reason string) string {
	text := reason
	if bold, ok := strings.CutPrefix(cutHTML(reason), "<p><strong>"); ok {
		text, _, _ = strings.Cut(bold, "</strong>")
	}
	return strings.TrimRight(shorten(makeExcerpt(text), maxGist), ".:")
}

// cutHTML returns the part of a reason's HTML that an excerpt reads, which ends before a tag if it can.
func cutHTML(reason string) string {
	if len(reason) <= maxRead {
		return reason
	}

	// Not within a character and, if there is a tag near, not within a tag.
	end := maxRead
	for !utf8.RuneStart(reason[end]) {
		end--
	}

	if tag := strings.LastIndexByte(reason[:end], '<'); tag > maxRead/2 {
		end = tag
	}
	return reason[:end]
}

// shorten returns the words of a text up to a length in code points.
func shorten(text string, most int) string {
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

// withoutHeadings returns the HTML of a reason for a page. Its headings become bold paragraphs, because the page's own
// headings are its outline. Nothing else changes: package reason decides what a reason may contain.
func withoutHeadings(html string) template.HTML { return template.HTML(headings.Replace(html)) }

var headings = strings.NewReplacer(
	"<h1>", paragraph, "<h2>", paragraph, "<h3>", paragraph, "<h4>", paragraph, "<h5>", paragraph, "<h6>", paragraph,
	"</h1>", "</p>", "</h2>", "</p>", "</h3>", "</p>", "</h4>", "</p>", "</h5>", "</p>", "</h6>", "</p>")

const paragraph = `<p class="h">`
