package site

import (
	"html/template"
	"strings"

	"example.org/registry/readmodel/reason"
)

const (
	maxExcerpt = 280   // code points
	maxGist    = 60    // code points
	maxRead    = 6_400 // bytes of HTML: more than an excerpt of plain words takes, and few enough to read sixty reasons for a page
)

// makeExcerpt returns the beginning of a reason's HTML as text on one line.
func makeExcerpt(html string) string {
	text := reason.Text(cutHTML(html))
	line := strings.Join(strings.Fields(text), " ")
	return shorten(line, maxExcerpt)
}

// makeGist returns the bold words at the beginning of a reason or, if it begins with other words, the beginning itself. The
// gist is one line.
func makeGist(html string) string {
	text := html
	if bold, ok := strings.CutPrefix(cutHTML(html), "<p><strong>"); ok {
		text, _, _ = strings.Cut(bold, "</strong>")
	}
	return strings.TrimRight(shorten(makeExcerpt(text), maxGist), ".:")
}

// cutHTML returns the beginning of a reason's HTML, from which excerpts are made. The cut may be inside a character, which
// ToValidUTF8 drops, or inside a tag, which reason.Text drops.
func cutHTML(html string) string {
	return strings.ToValidUTF8(html[:min(len(html), maxRead)], "")
}

// shorten returns a text or, if the text has more than limit code points, its beginning and an ellipsis.
func shorten(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}

	// End with a whole word if that leaves more than half of the beginning.
	text = string(runes[:limit])
	if space := strings.LastIndexByte(text, ' '); space > len(text)/2 {
		text = text[:space]
	}
	return strings.TrimRight(text, " ,.;:–-…") + "…"
}

// withoutHeadings returns the HTML of a reason for a page. The reason's headings become bold paragraphs, because a page's
// outline consists of its own headings. Nothing else changes: package reason decides what a reason may contain.
func withoutHeadings(html string) template.HTML { return template.HTML(headings.Replace(html)) }

var headings = strings.NewReplacer(
	"<h1>", paragraph, "<h2>", paragraph, "<h3>", paragraph, "<h4>", paragraph, "<h5>", paragraph, "<h6>", paragraph,
	"</h1>", "</p>", "</h2>", "</p>", "</h3>", "</p>", "</h4>", "</p>", "</h5>", "</p>", "</h6>", "</p>")

const paragraph = `<p class="h">`
