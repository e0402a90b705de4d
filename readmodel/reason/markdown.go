package reason

import (
	"bytes"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// newMarkdown returns goldmark without its parsers of HTML and of link reference definitions, which make text
// disappear. The numbers are priorities: goldmark asks the parser with the lowest number first.
func newMarkdown() goldmark.Markdown {
	blocks := parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(shallow{parser.NewListParser()}, 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(shallow{parser.NewBlockquoteParser()}, 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	)
	inlines := parser.WithInlineParsers(
		util.Prioritized(parser.NewCodeSpanParser(), 100),
		util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(addresses{}, 400),
		util.Prioritized(parser.NewEmphasisParser(), 500),
		util.Prioritized(strikethrough{extension.NewStrikethroughParser()}, 500),
	)

	return goldmark.New(
		goldmark.WithParser(parser.NewParser(blocks, inlines)),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(
			util.Prioritized(nodes{}, 1),
			util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		)),
	)
}

// maxNesting bounds how deep lists and quotes nest.
const maxNesting = 16

// shallow is a parser of lists or quotes. It takes a list or quote inside maxNesting others for text.
type shallow struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (s shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if n.Kind() == ast.KindList || n.Kind() == ast.KindBlockquote {
			depth++
		}
	}

	if depth >= maxNesting {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// strikethrough parses exactly two ~. One ~, or more than two, are text: 2~3 z 8~9 rat.
type strikethrough struct{ parser.InlineParser }

// Parse implements parser.InlineParser.
func (s strikethrough) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	run := len(line) - len(bytes.TrimLeft(line, "~"))
	if run != 2 {
		block.Advance(run)
		return ast.NewTextSegment(segment.WithStop(segment.Start + run))
	}
	return s.InlineParser.Parse(parent, block, pc)
}

// nodes renders code and links. goldmark would add other attributes to them, or leave out some of their text.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (nodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindFencedCodeBlock, renderFencedCode)
	reg.Register(ast.KindLink, renderLink)
	reg.Register(ast.KindImage, renderLink)
	reg.Register(ast.KindAutoLink, renderAutoLink)
}

// renderFencedCode writes code. Text after the opening fence becomes the first line of the code, since people
// write there, too.
func renderFencedCode(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
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
