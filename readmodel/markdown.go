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
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"example.org/registry/events"
)

// Bounds of a rendered reason (events/CONTRACT.md#mapping). They count input, never time, so that
// replicas agree.
const (
	// maxNesting bounds how deep lists and quotes nest, and maxNestedLines that depth times the lines
	// of the reason: goldmark retains a record of each line for each block that is open.
	maxNesting     = 16
	maxNestedLines = 64_000
	// maxDelimiters bounds runs of *, _ and ~, and maxUnlinked bounds closing brackets that end no
	// link. For each of them, goldmark scans the text before it or the rest of the line.
	maxDelimiters = 2_000
	maxUnlinked   = 200
	// maxGrowth and frameHTML bound the HTML of a reason: maxGrowth bytes for each of its bytes,
	// plus frameHTML.
	maxGrowth = 16
	frameHTML = 4 << 10
)

// MaxReasonHTML bounds the HTML of any reason in bytes. Other bounds follow from it: the largest
// response that a mirror reads, the largest ratio of an archive and the number of parts of a page.
const MaxReasonHTML = maxGrowth*events.MaxReason + frameHTML

// maxHTML returns the bound for a reason of reason bytes.
func maxHTML(reason int) int { return maxGrowth*reason + frameHTML }

// markdown renders reasons (events/CONTRACT.md#mapping). goldmark rejects addresses by a list of
// bad schemes; this is stricter: only an http or https address with a host, or a mailto address,
// becomes a link. markdown reuses its buffers, so one goroutine at a time may use it.
type markdown struct {
	md   goldmark.Markdown
	room *room
	out  bytes.Buffer
	w    *bufio.Writer // onto out; goldmark would make its own otherwise
}

// room is how much of each bound is left while one reason is rendered.
type room struct {
	nesting    int
	references int // bytes of addresses and titles that link references may still repeat
	delimiters int
	unlinked   int
}

func roomFor(reason string) room {
	return room{
		nesting:    min(maxNesting, maxNestedLines/(1+strings.Count(reason, "\n"))),
		references: len(reason),
		delimiters: maxDelimiters,
		unlinked:   maxUnlinked,
	}
}

func newMarkdown() *markdown {
	never := regexp.MustCompile(`^[^\s\S]`) // only http(s) addresses become links without markup
	left := &room{}
	linkify := extension.NewLinkify(
		extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"}),
		extension.WithLinkifyWWWRegexp(never),
		extension.WithLinkifyEmailRegexp(never),
	)
	m := &markdown{room: left, md: goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(boundedBlocks(left)...),
			parser.WithInlineParsers(boundedInlines(left)...),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		)),
		goldmark.WithExtensions(linkify),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(
			util.Prioritized(safeNodes{left}, 1),
			util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		)),
	)}
	m.w = bufio.NewWriter(&m.out)
	return m
}

// render returns the HTML of reason. If the HTML exceeds maxHTML bytes, it returns the reason as
// escaped text, markup included. It writes to a buffer, so there is no error to report.
func (m *markdown) render(reason string) string {
	m.out.Reset()
	m.w.Reset(&m.out)
	*m.room = roomFor(reason)
	_ = m.md.Convert([]byte(reason), m.w)
	_ = m.w.Flush()
	if m.out.Len() > maxHTML(len(reason)) {
		return "<p>" + stdhtml.EscapeString(reason) + "</p>\n"
	}
	return m.out.String()
}

// boundedBlocks returns goldmark's parsers of blocks, and bounds the depth of lists and quotes.
func boundedBlocks(left *room) []util.PrioritizedValue {
	all := parser.DefaultBlockParsers()
	for i, p := range all {
		for _, container := range []parser.BlockParser{parser.NewListParser(), parser.NewBlockquoteParser()} {
			if p.Value == container {
				all[i].Value = shallow{container, left}
			}
		}
	}
	return all
}

// shallow parses lists or quotes. Those nested too deep stay text.
type shallow struct {
	parser.BlockParser
	left *room
}

// Open implements parser.BlockParser.
func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if k := n.Kind(); k == ast.KindList || k == ast.KindBlockquote {
			depth++
		}
	}
	if depth >= s.left.nesting {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// boundedInlines returns goldmark's parsers of inline markup. It bounds the number of delimiters and
// of brackets, whose cost grows with the text around them.
func boundedInlines(left *room) []util.PrioritizedValue {
	all := append(parser.DefaultInlineParsers(), util.Prioritized(extension.NewStrikethroughParser(), 500))
	for i, p := range all {
		switch p.Value {
		case parser.NewLinkParser():
			all[i].Value = &links{InlineParser: parser.NewLinkParser(), left: left}
		case parser.NewEmphasisParser(), extension.NewStrikethroughParser():
			all[i].Value = delimiters{p.Value.(parser.InlineParser), left}
		}
	}
	return all
}

// delimiters parses runs of a delimiter while there is room.
type delimiters struct {
	parser.InlineParser
	left *room
}

// Parse implements parser.InlineParser.
func (d delimiters) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if d.left.delimiters == 0 {
		return nil
	}
	n := d.InlineParser.Parse(parent, block, pc)
	if n != nil {
		d.left.delimiters--
	}
	return n
}

// links parses links and images while there is room.
type links struct {
	parser.InlineParser
	left *room
}

// Parse implements parser.InlineParser.
func (l *links) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if l.left.unlinked == 0 {
		return nil
	}
	closing := block.Peek() == ']'
	n := l.InlineParser.Parse(parent, block, pc)
	if closing && n == nil {
		l.left.unlinked--
	}
	return n
}

// CloseBlock implements parser.CloseBlocker.
func (l *links) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	l.InlineParser.(parser.CloseBlocker).CloseBlock(parent, block, pc)
}

// safeNodes renders the nodes through which a reason could do harm.
type safeNodes struct{ left *room }

// RegisterFuncs implements renderer.NodeRenderer.
func (s safeNodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHTMLBlock, dropped)
	reg.Register(ast.KindRawHTML, dropped)
	reg.Register(ast.KindImage, altText)
	reg.Register(ast.KindLink, s.link)
	reg.Register(ast.KindAutoLink, autoLink)
}

func dropped(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
	return ast.WalkSkipChildren, nil
}

// altText renders an image as its description, in plain text.
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
			if n.IsRaw() { // a code span has neither escapes nor entities
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

// link writes a link. If its address is not allowed, or there is no room to repeat its definition,
// it writes the link's text alone.
func (s safeNodes) link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Link)
	if !entering {
		if n.Destination != nil {
			closeLink(w)
		}
		return ast.WalkContinue, nil
	}
	if n.Reference != nil && !s.left.fits(len(n.Destination)+len(n.Title)) {
		n.Destination = nil // omits the end tag, too
		return ast.WalkContinue, nil
	}
	address := util.URLEscape(n.Destination, true)
	if !allowed(address) {
		n.Destination = nil
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

// fits takes bytes of a link reference out of the room if they fit, and reports whether they did.
func (r *room) fits(bytes int) bool {
	if bytes > r.references {
		return false
	}
	r.references -= bytes
	return true
}

const linkRel = ` rel="nofollow noopener noreferrer">`

func openLink(w util.BufWriter, address []byte) {
	_, _ = io.WriteString(w, `<a href="`)
	_, _ = w.Write(util.EscapeHTML(address))
	_ = w.WriteByte('"')
}

func closeLink(w util.BufWriter) { _, _ = io.WriteString(w, "</a>") }

// allowed reports whether address, entities resolved, begins with one of the three schemes, and
// names a host if that is http or https. For a missing host, browsers would use the page's.
func allowed(address []byte) bool {
	for _, scheme := range [...]string{"http://", "https://", "mailto:"} {
		if len(address) >= len(scheme) && bytes.EqualFold(address[:len(scheme)], []byte(scheme)) {
			rest := address[len(scheme):]
			return scheme == "mailto:" || len(rest) > 0 && !bytes.ContainsRune([]byte(`/\?#:@`), rune(rest[0]))
		}
	}
	return false
}

// visibleText returns a rendered reason as a visitor sees it: without markup, with white space for
// block boundaries and breaks (httpapi/CONTRACT.md#search). rendered is output of markdown, in
// which every < opens a tag and every > in an attribute is escaped, so no HTML parser is needed.
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

// inline reports whether a tag of a rendered reason does not break the line.
func inline(tag string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
	switch name {
	case "a", "code", "del", "em", "strong":
		return true
	default:
		return false
	}
}
