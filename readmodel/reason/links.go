package reason

import (
	"bufio"
	"bytes"
	stdhtml "html"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"example.org/registry/readmodel/lookalike"
)

// rel is the attribute rel of every link: a link improves no page's rank, and the page does not learn where its
// reader was before.
const rel = "nofollow noopener noreferrer"

// addresses is a parser of http and https addresses that have no markup around them.
type addresses struct{}

// Trigger implements parser.InlineParser.
func (addresses) Trigger() []byte { return []byte{':'} }

// Parse implements parser.InlineParser. goldmark calls Parse at a colon, when the text node before the colon already
// has the scheme.
func (addresses) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	before, isText := parent.LastChild().(*ast.Text)
	if !isText || before.Segment.Stop != segment.Start || !bytes.HasPrefix(line, []byte("://")) {
		return nil
	}

	// An address has a letter or digit after its slashes, and none before its scheme.
	textBefore := before.Segment.Value(block.Source())
	scheme := schemeAtEnd.Find(textBefore[max(0, len(textBefore)-len("https")):])
	beforeScheme, _ := utf8.DecodeLastRune(textBefore[:len(textBefore)-len(scheme)])
	afterSlashes, _ := utf8.DecodeRune(line[len("://"):])
	if scheme == nil || lookalike.IsWordly(beforeScheme) || !lookalike.IsWordly(afterSlashes) {
		return nil
	}

	// Move the scheme from the end of textBefore into the address.
	start := segment.Start - len(scheme)
	before.Segment.Stop = start
	if before.Segment.IsEmpty() {
		parent.RemoveChild(parent, before)
	}

	length := lengthOfAddress(line)
	block.Advance(length)
	return ast.NewAutoLink(ast.AutoLinkURL, ast.NewTextSegment(text.NewSegment(start, segment.Start+length)))
}

// schemeAtEnd matches the scheme at the end of a text.
var schemeAtEnd = regexp.MustCompile("(?i)https?$")

// The characters that end an address, and the characters that an address does not end with.
const (
	enders   = "<>\"|`"
	trailers = ".,:;!?'*_~"
)

// reference matches a character reference.
const reference = `&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});`

var (
	anyReference   = regexp.MustCompile(reference)
	firstReference = regexp.MustCompile("^" + reference)
)

// lengthOfAddress returns the length of the address at the start of line. A character reference counts as its
// character.
func lengthOfAddress(line []byte) (length int) {
	var opened []rune // brackets that are still to be closed
	for pos := 0; pos < len(line); {
		r, size := utf8.DecodeRune(line[pos:])
		if ref := firstReference.Find(line[pos:]); ref != nil {
			r, _ = utf8.DecodeRune(resolveReference(ref))
			size = len(ref)
		}

		if unicode.IsSpace(r) || strings.ContainsRune(enders, r) {
			break
		}

		// A closing bracket that the address has not opened ends it, too.
		if i := strings.IndexRune("([{", r); i >= 0 {
			opened = append(opened, rune(")]}"[i]))
		} else if strings.ContainsRune(")]}", r) {
			last := len(opened) - 1
			if last < 0 || opened[last] != r {
				break
			}
			opened = opened[:last]
		}

		pos += size
		if !strings.ContainsRune(trailers, r) {
			length = pos
		}
	}
	return length
}

// renderLink writes the text of a link or an image, and then the address in parentheses. Only the address
// becomes a link. If the text equals the address, renderLink writes the address alone.
func renderLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	var target []byte
	switch n := node.(type) {
	case *ast.Link:
		target = n.Destination
	case *ast.Image:
		target = n.Destination
	}

	address := resolve(target)
	if address == "" {
		return ast.WalkContinue, nil
	}

	if textOf(source, node) == address {
		if entering {
			writeAddress(w, address)
		}
		return ast.WalkSkipChildren, nil
	}

	// Let goldmark write the text, and then call this function again.
	if entering {
		return ast.WalkContinue, nil
	}

	if node.FirstChild() != nil {
		_ = w.WriteByte(' ')
	}
	_ = w.WriteByte('(')
	writeAddress(w, address)
	_ = w.WriteByte(')')
	return ast.WalkContinue, nil
}

// textOf returns the text of a link, or "" if the text has markup.
func textOf(source []byte, node ast.Node) string {
	var b strings.Builder
	for n := node.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(resolve(n.Segment.Value(source)))
		case *ast.AutoLink:
			b.WriteString(resolveReferences(n.Label(source))) // a backslash in an address escapes nothing
		default:
			return ""
		}
	}
	return b.String()
}

// renderAutoLink writes an address without markup as a link.
func renderAutoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		writeAddress(w, resolveReferences(node.(*ast.AutoLink).Label(source)))
	}
	return ast.WalkContinue, nil
}

// writeAddress writes an address, as a link if it may be one.
func writeAddress(w util.BufWriter, address string) {
	shown := string(util.EscapeHTML([]byte(address)))

	if linkable.MatchString(strings.ToLower(address)) {
		target := util.EscapeHTML(util.URLEscape([]byte(address), false))
		shown = `<a href="` + string(target) + `" rel="` + rel + `">` + shown + "</a>"
	}
	_, _ = w.WriteString(shown)
}

// linkable matches the addresses that may be links, in small letters: http, https or mailto.
var linkable = regexp.MustCompile(`^(?:mailto:[^/]|https?://[\pL\pN\pM])`)

// resolve returns Markdown text with its escapes and character references resolved.
func resolve(b []byte) string {
	if !bytes.ContainsAny(b, "\\&") {
		return dropMarks(string(b))
	}

	// goldmark resolves both, and escapes its output as HTML.
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	html.DefaultWriter.Write(w, b)
	_ = w.Flush()
	return dropMarks(stdhtml.UnescapeString(out.String()))
}

// resolveReferences returns an address without markup with its character references resolved.
func resolveReferences(b []byte) string {
	return dropMarks(string(anyReference.ReplaceAllFunc(b, resolveReference)))
}

// resolveReference returns the character of a reference, or the reference itself if it has no character.
func resolveReference(ref []byte) []byte {
	resolved := stdhtml.UnescapeString(string(ref))
	if strings.HasSuffix(resolved, ";") { // an unknown name, or one with a known start: &notit; becomes ¬it;
		return ref
	}
	return []byte(resolved)
}
