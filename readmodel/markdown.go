package readmodel

import (
	"bufio"
	"bytes"
	stdhtml "html"
	"io"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// markdown renders reasons (events/CONTRACT.md#mapping). goldmark rejects addresses by a list of
// bad schemes; this is stricter: what is not http, https or mailto is no link. It keeps its
// buffers, so one goroutine at a time may use it.
type markdown struct {
	md  goldmark.Markdown
	out bytes.Buffer
	w   *bufio.Writer // onto out; given one, goldmark makes none
}

func newMarkdown() *markdown {
	never := regexp.MustCompile(`^[^\s\S]`) // only http(s) addresses become links by themselves
	m := &markdown{md: goldmark.New(
		goldmark.WithExtensions(
			extension.Strikethrough,
			extension.NewLinkify(
				extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"}),
				extension.WithLinkifyWWWRegexp(never),
				extension.WithLinkifyEmailRegexp(never),
			),
		),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(safeNodes{}, 1))),
	)}
	m.w = bufio.NewWriter(&m.out)
	return m
}

// render returns the HTML of reason. It is written to a buffer, so there is no error to report.
func (m *markdown) render(reason string) string {
	m.out.Reset()
	m.w.Reset(&m.out)
	_ = m.md.Convert([]byte(reason), m.w)
	_ = m.w.Flush()
	return m.out.String()
}

// safeNodes renders the nodes through which a reason could do harm.
type safeNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (safeNodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHTMLBlock, dropped)
	reg.Register(ast.KindRawHTML, dropped)
	reg.Register(ast.KindImage, altText)
	reg.Register(ast.KindLink, link)
	reg.Register(ast.KindAutoLink, autoLink)
}

func dropped(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
	return ast.WalkSkipChildren, nil
}

// altText stands for a picture: its description as plain text, without the picture.
func altText(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		plain(w, source, node)
	}
	return ast.WalkSkipChildren, nil
}

// plain writes the text below node without its markup.
func plain(w util.BufWriter, source []byte, node ast.Node) {
	for c := node.FirstChild(); c != nil; c = c.NextSibling() {
		switch n := c.(type) {
		case *ast.Text:
			if n.IsRaw() { // of a code span: neither escapes nor entities
				html.DefaultWriter.RawWrite(w, n.Segment.Value(source))
			} else {
				html.DefaultWriter.Write(w, n.Segment.Value(source))
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				_ = w.WriteByte('\n')
			}
		case *ast.String:
			_, _ = w.Write(util.EscapeHTML(n.Value))
		case *ast.AutoLink:
			_, _ = w.Write(util.EscapeHTML(n.Label(source)))
		default:
			plain(w, source, c)
		}
	}
}

func link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Link)
	address := util.URLEscape(n.Destination, true)
	if !allowed(address) {
		return ast.WalkContinue, nil
	}
	if !entering {
		closeLink(w)
		return ast.WalkContinue, nil
	}
	openLink(w, address)
	if n.Title != nil {
		_, _ = io.WriteString(w, ` title="`)
		html.DefaultWriter.Write(w, n.Title)
		_ = w.WriteByte('"')
	}
	_, _ = io.WriteString(w, linkRel)
	return ast.WalkContinue, nil
}

func autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.AutoLink)
	address := util.URLEscape(n.URL(source), false)
	if n.AutoLinkType == ast.AutoLinkEmail && !bytes.HasPrefix(bytes.ToLower(address), []byte("mailto:")) {
		address = append([]byte("mailto:"), address...)
	}
	ok := allowed(address)
	if ok {
		openLink(w, address)
		_, _ = io.WriteString(w, linkRel)
	}
	_, _ = w.Write(util.EscapeHTML(n.Label(source)))
	if ok {
		closeLink(w)
	}
	return ast.WalkContinue, nil
}

const linkRel = ` rel="nofollow noopener noreferrer">`

func openLink(w util.BufWriter, address []byte) {
	_, _ = io.WriteString(w, `<a href="`)
	_, _ = w.Write(util.EscapeHTML(address))
	_ = w.WriteByte('"')
}

func closeLink(w util.BufWriter) { _, _ = io.WriteString(w, "</a>") }

// allowed reports whether address, entities resolved, begins with one of the three schemes.
func allowed(address []byte) bool {
	for _, scheme := range [...]string{"http://", "https://", "mailto:"} {
		if len(address) >= len(scheme) && bytes.EqualFold(address[:len(scheme)], []byte(scheme)) {
			return true
		}
	}
	return false
}

// visibleText returns a rendered reason as its reader sees it: without markup, with white space for
// block boundaries and breaks (httpapi/CONTRACT.md#search). rendered is what markdown wrote, where
// every < opens a tag and every > in an attribute is escaped, so no HTML parser is needed.
func visibleText(rendered string) string {
	var b strings.Builder
	b.Grow(len(rendered))
	for {
		text, rest, tagged := strings.Cut(rendered, "<")
		b.WriteString(stdhtml.UnescapeString(text))
		if !tagged {
			return strings.TrimSpace(b.String())
		}
		var tag string
		tag, rendered, _ = strings.Cut(rest, ">")
		if !inline(tag) {
			b.WriteByte(' ')
		}
	}
}

// inline reports whether a tag of a rendered reason leaves its surroundings on one line.
func inline(tag string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
	switch name {
	case "a", "code", "del", "em", "strong":
		return true
	default:
		return false
	}
}
