package site

import (
	"strings"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
)

// maxDepth is how deep elements of a reason may lie in each other: deeper ones are left out and their
// text stays. Nobody writes like that but who wants browsers to suffer.
const maxDepth = 12

// maxTag is the longest tag in bytes, which is that of a link: a longer one is left out, too.
const maxTag = 2048

// newPolicy allows what the renderer of readmodel emits, and nothing else. Headings become bold
// paragraphs in reasons, because the page's own headings are its outline.
func newPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li",
		"h1", "h2", "h3", "h4", "h5", "h6")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	return p
}

// text is the HTML of a reason made harmless, in pieces that a page can be filled with.
type text struct {
	tokens []html.Token
	size   int // bytes of the whole
}

// element is one that is open, and whether it is kept.
type element struct {
	name string
	kept bool
}

// beginning is as much of a reason's HTML as a page with many entries looks at.
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

// maxRead is what beginning looks at in bytes: several times what such a page shows of a reason, so that it
// ends where nobody looks, and little enough for sixty reasons a page.
const maxRead = 4 * maxReason

// sanitise is the second look at a reason's HTML, the renderer's being the first. What it returns is
// well formed whatever it is given.
func sanitise(policy *bluemonday.Policy, reason string) *text {
	reason = strings.ReplaceAll(reason, "\x00", "") // no event has one; in a template it would be a mark to fill
	z := html.NewTokenizer(strings.NewReader(policy.Sanitize(reason)))
	t := &text{}
	var open []element
	for z.Next() != html.ErrorToken {
		tok := asParagraph(z.Token())
		switch {
		case tok.Type == html.StartTagToken && !void(tok.Data):
			e := element{tok.Data, len(open) < maxDepth && len(tok.String()) <= maxTag}
			if open = append(open, e); e.kept {
				t.add(tok)
			}
		case tok.Type == html.EndTagToken:
			open = t.close(open, tok.Data)
		default:
			t.add(tok)
		}
	}
	for len(open) > 0 {
		open = t.close(open, open[len(open)-1].name)
	}
	return t
}

func (t *text) add(tok html.Token) {
	t.tokens = append(t.tokens, tok)
	t.size += len(tok.String())
}

// close ends the innermost element if it is of that name.
func (t *text) close(open []element, name string) []element {
	last := len(open) - 1
	if last < 0 || open[last].name != name {
		return open
	}
	if open[last].kept {
		t.add(html.Token{Type: html.EndTagToken, Data: name})
	}
	return open[:last]
}

// asParagraph makes a heading of a reason a paragraph of its own look.
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
