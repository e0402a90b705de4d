package site

import (
	"html/template"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"

	markdown "example.org/registry/readmodel/reason"
)

// newPolicy allows the elements of a reason (reason.Elements), with links of these schemes.
func newPolicy(schemes ...string) *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements(slices.Collect(maps.Keys(markdown.Elements()))...)
	p.AllowAttrs("href").Matching(regexp.MustCompile(`^(?i:` + strings.Join(append(schemes, "https?://", "mailto:"), "|") + `)`)).OnElements("a")
	return p
}

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

// sanitise removes everything from HTML that the policy does not allow. The result is well formed
// for any input. Of what the renderer of reasons wrote, it removes nothing.
func sanitise(policy *bluemonday.Policy, reason string) template.HTML {
	z := html.NewTokenizer(strings.NewReader(policy.Sanitize(strings.ReplaceAll(reason, "\x00", ""))))
	var out strings.Builder
	var open []string
	for z.Next() != html.ErrorToken {
		tok := asParagraph(z.Token())
		switch {
		case tok.Type == html.StartTagToken && !void(tok.Data):
			if open = append(open, tok.Data); tok.Data == "a" {
				tok.Attr = append(tok.Attr, html.Attribute{Key: "rel", Val: markdown.Rel})
			}
		case tok.Type == html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != tok.Data {
				continue
			}
			open = open[:len(open)-1]
		case tok.Type == html.TextToken:
			out.Write(util.EscapeHTML([]byte(tok.Data))) // as the renderer does
			continue
		}
		out.WriteString(tok.String())
	}
	for _, name := range slices.Backward(open) {
		out.WriteString("</" + name + ">")
	}
	return template.HTML(out.String())
}

// asParagraph turns headings into bold paragraphs, because the page's own headings are its outline.
func asParagraph(tok html.Token) html.Token {
	if len(tok.Data) == 2 && tok.Data[0] == 'h' && tok.Data[1] >= '1' && tok.Data[1] <= '6' && tok.Type != html.TextToken {
		tok.Data, tok.Attr = "p", nil
		if tok.Type == html.StartTagToken {
			tok.Attr = []html.Attribute{{Key: "class", Val: "h"}}
		}
	}
	return tok
}

func void(element string) bool { return element == "br" || element == "hr" }
