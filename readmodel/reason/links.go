package reason

import (
	"bufio"
	"bytes"
	stdhtml "html"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/norm"

	"example.org/registry/readmodel/lookalike"
)

// addresses parses http and https addresses without markup: the whole run of characters, or nothing.
type addresses struct{ left *room }

// Trigger implements parser.InlineParser.
func (addresses) Trigger() []byte { return []byte{':'} }

// Parse implements parser.InlineParser. The scheme before the colon is already part of the text.
func (a addresses) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	before, ok := parent.LastChild().(*ast.Text)
	if !ok || segment.Start < a.left.refused || before.Segment.Stop != segment.Start {
		return nil
	}
	written := before.Segment.Value(block.Source())
	scheme := schemeAtEnd(written)
	start := written[:len(written)-len(scheme)]
	if scheme == "" || !bytes.HasPrefix(line, []byte("://")) {
		return nil
	}
	if last, _ := utf8.DecodeLastRune(start); inWord(last) {
		return nil
	}
	run, whole := runOf(line[len("://"):])
	stop := segment.Start + len("://") + run
	if !whole || !isPlainHost(string(resolve(line[len("://"):len("://")+run]))) {
		a.left.refused = stop
		return nil
	}
	from := segment.Start - len(scheme)
	block.Advance(stop - segment.Start)
	if before.Segment.Stop = from; len(start) == 0 {
		parent.RemoveChild(parent, before)
	}
	return ast.NewAutoLink(ast.AutoLinkURL, ast.NewTextSegment(text.NewSegment(from, stop)))
}

// schemeAtEnd returns http or https, as written, at the end of b; else "".
func schemeAtEnd(b []byte) string {
	for _, scheme := range [...]string{"https", "http"} {
		if at := len(b) - len(scheme); at >= 0 && strings.EqualFold(string(b[at:]), scheme) {
			return string(b[at:])
		}
	}
	return ""
}

const (
	after   = `.,:;!?'"*_~”»’` // what ends no address
	closing = ")]}>"
)

// runOf returns the length of the address at the start of line: up to white space, a dropped tag or
// a closing bracket that was not opened in it, without what ends no address. It is not whole where
// text goes on behind a dropped tag without a break.
func runOf(line []byte) (length int, whole bool) {
	var opened []rune
	whole = true
	for length < len(line) {
		r, size := utf8.DecodeRune(line[length:])
		if unicode.IsSpace(r) {
			break
		}
		if r == '<' {
			if tag := droppedTags.FindSubmatchIndex(line[length:]); tag != nil {
				next, _ := utf8.DecodeRune(bytes.TrimLeft(line[length+tag[1]:], after))
				whole = tag[2] >= 0 || next == utf8.RuneError || unicode.IsSpace(next) || strings.ContainsRune("<"+closing, next)
				break
			}
		}
		if at := strings.IndexRune("([{<", r); at >= 0 {
			opened = append(opened, rune(closing[at]))
		} else if strings.ContainsRune(closing, r) {
			if len(opened) == 0 || opened[len(opened)-1] != r {
				break
			}
			opened = opened[:len(opened)-1]
		}
		length += size
	}
	return len(bytes.TrimRight(line[:length], after)), whole
}

// link writes a link or an image. If it is none (linked), it writes its text and then its address.
// A title follows in parentheses.
func link(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	var target, title []byte
	switch n := node.(type) {
	case *ast.Link:
		target, title = n.Destination, n.Title
	case *ast.Image:
		target, title = n.Destination, n.Title
	}
	address := string(resolve(target))
	if entering {
		seen, ok := textOf(source, node)
		if ok = ok && isLink(address) && (!looksLikeAddress(seen) || isOwn(seen, address)); ok {
			openLink(w, address)
		}
		node.SetAttributeString(isLinked, ok)
		if ok && !IsVisible(seen) {
			writeText(w, address)
		}
		return ast.WalkContinue, nil
	}
	if linked(node) {
		_, _ = w.WriteString("</a>")
	} else if address != "" {
		if node.FirstChild() != nil {
			_ = w.WriteByte(' ')
		}
		writeText(w, address)
	}
	if len(title) > 0 {
		_, _ = w.WriteString(" (")
		html.DefaultWriter.Write(w, title)
		_ = w.WriteByte(')')
	}
	return ast.WalkContinue, nil
}

// isLinked is the attribute of nodes that are written as links.
const isLinked = "linked"

func linked(node ast.Node) bool {
	is, ok := node.AttributeString(isLinked)
	return ok && is.(bool)
}

// autoLink writes an address as it is written, as a link if it is one. One in a link's text is text.
func autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.AutoLink)
	label := string(resolve(n.Label(source)))
	address := label
	if n.AutoLinkType == ast.AutoLinkEmail {
		address = "mailto:" + label
	}
	switch ok := isLink(address); {
	case !ok:
		writeText(w, "<"+label+">") // only markup with brackets comes this far
	case inLink(node):
		writeText(w, label)
	default:
		openLink(w, address)
		writeText(w, label)
		_, _ = w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

func inLink(node ast.Node) bool {
	for p := node.Parent(); p != nil && p.Type() == ast.TypeInline; p = p.Parent() {
		if linked(p) {
			return true
		}
	}
	return false
}

func openLink(w util.BufWriter, address string) {
	_, _ = w.WriteString(`<a href="`)
	_, _ = w.Write(util.EscapeHTML(util.URLEscape([]byte(address), false)))
	_, _ = w.WriteString(`" rel="` + Rel + `">`)
}

func writeText(w util.BufWriter, s string) { _, _ = w.Write(util.EscapeHTML([]byte(s))) }

// resolve returns Markdown text with its escapes and character references resolved.
func resolve(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b, '&') < 0 {
		return b
	}
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	html.DefaultWriter.Write(w, b)
	_ = w.Flush()
	return []byte(withoutMarks(stdhtml.UnescapeString(out.String())))
}

// textOf returns the text below a link. It reports whether that has no link in it; with one, the
// outer one is none.
func textOf(source []byte, node ast.Node) (string, bool) {
	var b strings.Builder
	ok := true
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n == node {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link, *ast.Image:
			ok = false
			return ast.WalkStop, nil
		case *ast.Text:
			if n.IsRaw() {
				b.Write(n.Segment.Value(source))
			} else {
				b.Write(resolve(n.Segment.Value(source)))
			}
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte('\n')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(resolve(n.Label(source)))
		}
		return ast.WalkContinue, nil
	})
	return b.String(), ok
}

// isLink reports whether an address may be a link: http or https with a plain host, or mailto.
func isLink(address string) bool {
	scheme, rest, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "mailto":
		return rest != "" && rest[0] != '/'
	case "http", "https":
		rest, ok := strings.CutPrefix(rest, "//")
		return ok && isPlainHost(rest)
	}
	return false
}

// isPlainHost reports whether rest, an address without its scheme, begins with a host that everyone
// reads alike: letters of one script, digits, dots and hyphens, then a port at most. A user, a
// bracket or a letter that only looks like one would lead elsewhere than it reads.
func isPlainHost(rest string) bool {
	host := rest
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		host = rest[:at]
	}
	host, port, hasPort := strings.Cut(host, ":")
	if hasPort && (port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "") {
		return false
	}
	if len(host) > 253 || !norm.NFKC.IsNormalString(host) {
		return false
	}
	var script *unicode.RangeTable
	letters := false
	for _, r := range host {
		switch {
		case r >= '0' && r <= '9':
			letters = true
			continue
		case r == '.' || r == '-':
			continue
		case !unicode.IsLetter(r):
			return false
		}
		if letters = true; script == nil {
			script = lookalike.ScriptOf(r)
		}
		if script == nil || !unicode.Is(script, r) {
			return false
		}
	}
	return letters
}

// looksLikeAddress reports whether people read a link's text as an address: it has :// in it, or the
// whole of it is a host, also with a path or as an e-mail address.
func looksLikeAddress(seen string) bool {
	seen = bare(seen)
	if strings.Contains(seen, "://") {
		return true
	}
	if at := strings.LastIndexByte(seen, '@'); at > 0 {
		seen = seen[at+1:]
	}
	if at := strings.IndexAny(seen, "/?#:"); at >= 0 {
		seen = seen[:at]
	}
	return isHost(seen)
}

// isHost reports whether s names a host: an IP address, or a name whose last label is a top-level
// domain. So zrzut.png is none.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	if len(s) > 253 {
		return false
	}
	ascii, err := idna.Lookup.ToASCII(s)
	if err != nil || !strings.Contains(ascii, ".") {
		return false
	}
	switch last := ascii[strings.LastIndexByte(ascii, '.')+1:]; last {
	case "example", "test", "invalid", "localhost": // RFC 2606
		return true
	default:
		_, known := publicsuffix.PublicSuffix(last)
		return known
	}
}

// isOwn reports whether the text of a link is its address, whose scheme and last slash the text may
// lack.
func isOwn(seen, address string) bool {
	address = strings.TrimSuffix(address, "/")
	_, rest, _ := strings.Cut(address, ":")
	rest = strings.TrimPrefix(rest, "//")
	for _, seen := range [...]string{strings.TrimSpace(seen), bare(seen)} {
		if seen = strings.TrimSuffix(seen, "/"); seen == address || seen == rest {
			return true
		}
	}
	return false
}

// bare returns s as people read it: in NFKC, without invisible characters and outer punctuation.
func bare(s string) string {
	return strings.TrimFunc(lookalike.Visible(s), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(after+`„“‘«()[]{}<>`, r)
	})
}
