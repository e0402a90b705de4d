package reason

import (
	"bytes"
	"regexp"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxNesting bounds how deep lists and quotes nest. Deeper markers are text.
const maxNesting = 16

// room is how much of what costs more than its length is left while one reason is rendered. Markers
// after that are text.
type room struct {
	delimiters int // runs of *, _ and ~~: for each, goldmark may look at all before it
	brackets   int // opening brackets
	unlinked   int // closing brackets that end no link: for each, goldmark may read the rest of the line
	refused    int // up to here in the source, no address is a link
}

var fullRoom = room{delimiters: 2000, brackets: 2000, unlinked: 200}

// newMarkdown returns goldmark without the parsers of HTML blocks and of link reference definitions.
func newMarkdown(left *room) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(
				util.Prioritized(parser.NewSetextHeadingParser(), 100),
				util.Prioritized(parser.NewThematicBreakParser(), 200),
				util.Prioritized(numbered{shallow{parser.NewListParser()}}, 300),
				util.Prioritized(parser.NewListItemParser(), 400),
				util.Prioritized(parser.NewCodeBlockParser(), 500),
				util.Prioritized(parser.NewATXHeadingParser(), 600),
				util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
				util.Prioritized(shallow{parser.NewBlockquoteParser()}, 800),
				util.Prioritized(parser.NewParagraphParser(), 1000),
			),
			parser.WithInlineParsers(
				util.Prioritized(parser.NewCodeSpanParser(), 100),
				util.Prioritized(links{parser.NewLinkParser(), left}, 200),
				util.Prioritized(tags{}, 300),
				util.Prioritized(parser.NewAutoLinkParser(), 400),
				util.Prioritized(addresses{left}, 400),
				util.Prioritized(delimiters{parser.NewEmphasisParser(), left}, 500),
				util.Prioritized(delimiters{extension.NewStrikethroughParser(), left}, 500),
			),
		)),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(
			util.Prioritized(nodes{}, 1),
			util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		)),
	)
}

// shallow parses lists or quotes. Those nested too deep stay text.
type shallow struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if k := n.Kind(); k == ast.KindList || k == ast.KindBlockquote {
			depth++
		}
	}
	if depth >= maxNesting {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// numbered parses lists. A number is a marker only where a list that begins with 1 counts on, or
// repeats 1: dates, prices and telephone numbers begin lines, too.
type numbered struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (n numbered) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, _ := reader.PeekLine()
	if number := markerOf(line); number != "" && number != "1" {
		return nil, parser.NoChildren
	}
	return n.BlockParser.Open(parent, reader, pc)
}

// repeats is the Start of a list whose markers are all 1.
const repeats = 0

// Continue implements parser.BlockParser.
func (n numbered) Continue(node ast.Node, reader text.Reader, pc parser.Context) parser.State {
	list := node.(*ast.List)
	line, _ := reader.PeekLine()
	number := markerOf(line)
	item, _ := node.LastChild().(*ast.ListItem)
	if indent, _ := util.IndentWidth(line, reader.LineOffset()); number != "" && list.IsOrdered() && item != nil &&
		(indent < item.Offset || item.ChildCount() == 0) {
		next, second := list.ChildCount()+1, list.ChildCount() == 1
		switch {
		case number == "1" && (second || list.Start == repeats):
			list.Start = repeats
		case number != strconv.Itoa(next) || list.Start == repeats:
			return parser.Close
		}
	}
	return n.BlockParser.Continue(node, reader, pc)
}

// markerOf returns the number of an ordered list's marker at the start of a line, or "".
func markerOf(line []byte) string {
	line = bytes.TrimLeft(line, " \t")
	digits := 0
	for digits < len(line) && util.IsNumeric(line[digits]) {
		digits++
	}
	if digits == len(line) || line[digits] != '.' && line[digits] != ')' {
		return ""
	}
	return string(line[:digits])
}

// tags parses the tags that are dropped. Any other <…> is text.
type tags struct{}

// droppedTags are tags without attributes. The first group is of those that end a line.
var droppedTags = regexp.MustCompile(`^</?(?:(br|p|hr|ul|ol|li|div|blockquote)|b|i|u|s|em|strong|del|code|span) ?/?>`)

// Trigger implements parser.InlineParser.
func (tags) Trigger() []byte { return []byte{'<'} }

// Parse implements parser.InlineParser.
func (tags) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	at := droppedTags.FindSubmatchIndex(line)
	if at == nil {
		return nil
	}
	block.Advance(at[1])
	if at[2] >= 0 {
		return ast.NewString(lineEnd)
	}
	return ast.NewString(nil)
}

var lineEnd = []byte("\n")

// delimiters parses runs of a delimiter while there is room. Between letters and digits a run is
// text, as in 1*2*3 and snake_case, and so is a run of ~ other than two.
type delimiters struct {
	parser.InlineParser
	left *room
}

// Parse implements parser.InlineParser.
func (d delimiters) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	run := len(line) - len(bytes.TrimLeft(line, string(line[:1])))
	after, _ := utf8.DecodeRune(line[run:])
	if d.left.delimiters == 0 || inWord(block.PrecendingCharacter()) && inWord(after) || line[0] == '~' && run != 2 {
		block.Advance(run)
		return ast.NewTextSegment(segment.WithStop(segment.Start + run))
	}
	d.left.delimiters--
	return d.InlineParser.Parse(parent, block, pc)
}

func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// links parses links and images while there is room.
type links struct {
	parser.InlineParser
	left *room
}

// Parse implements parser.InlineParser.
func (l links) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if l.left.unlinked == 0 || l.left.brackets == 0 {
		return nil
	}
	closing := block.Peek() == ']'
	n := l.InlineParser.Parse(parent, block, pc)
	switch {
	case !closing && n != nil:
		l.left.brackets--
	case closing && n == nil:
		l.left.unlinked--
	}
	return n
}

// CloseBlock implements parser.CloseBlocker.
func (l links) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	l.InlineParser.(parser.CloseBlocker).CloseBlock(parent, block, pc)
}

// nodes renders what goldmark would render with attributes, or without its text.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (nodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindList, list)
	reg.Register(ast.KindFencedCodeBlock, fencedCode)
	reg.Register(ast.KindString, lineEnds)
	reg.Register(ast.KindLink, link)
	reg.Register(ast.KindImage, link)
	reg.Register(ast.KindAutoLink, autoLink)
}

// list writes a list, which begins with 1.
func list(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "ul>\n"
	if node.(*ast.List).IsOrdered() {
		tag = "ol>\n"
	}
	if !entering {
		tag = "/" + tag
	}
	_, _ = w.WriteString("<" + tag)
	return ast.WalkContinue, nil
}

// fencedCode writes code, whose first line is the info of the fence: people write there, too.
func fencedCode(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</code></pre>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<pre><code>")
	if info := node.(*ast.FencedCodeBlock).Info; info != nil {
		html.DefaultWriter.RawWrite(w, info.Segment.Value(source))
		_ = w.WriteByte('\n')
	}
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		html.DefaultWriter.RawWrite(w, line.Value(source))
	}
	return ast.WalkContinue, nil
}

// lineEnds writes what a dropped tag leaves: nothing, or a line end between two texts.
func lineEnds(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if value := node.(*ast.String).Value; entering && node.PreviousSibling() != nil && node.NextSibling() != nil {
		_, _ = w.Write(value)
	}
	return ast.WalkContinue, nil
}
