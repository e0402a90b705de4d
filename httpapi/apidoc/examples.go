package apidoc

import (
	"embed"
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strings"
)

// Address stands for the service's own address in the examples. The page's handler replaces it.
const Address = "https://registry.example"

// The leading _ makes the Go command ignore the example in Go.
//
//go:embed _examples
var exampleFiles embed.FS

// Program is an example of a whole program in one language. HTML is Code in color.
type Program struct {
	ID, Language, Code string
	HTML               template.HTML
}

// Programs is one example in several languages. Name begins the ids of its elements.
type Programs struct {
	Name, Label string
	Programs    []Program
}

// languages are those of the examples.
func languages() []Program {
	return []Program{{ID: "sh", Language: "curl"}, {ID: "mjs", Language: "JavaScript"}, {ID: "py", Language: "Python"}, {ID: "go", Language: "Go"}}
}

// libraries are those of the Discord bots.
func libraries() []Program {
	return []Program{{ID: "mjs", Language: "discord.js"}, {ID: "py", Language: "discord.py"}}
}

// programs returns the example of the files name.* in each of the languages.
func programs(name, label string, all []Program) (Programs, error) {
	for i := range all {
		text, err := exampleFiles.ReadFile("_examples/" + name + "." + all[i].ID)
		if err != nil {
			return Programs{}, fmt.Errorf("examples: %w", err)
		}
		all[i].Code = string(text)
		all[i].HTML = colored(all[i].Code)
	}
	return Programs{Name: name, Label: label, Programs: all}, nil
}

// tokens matches the colored tokens of all languages, each kind in a group: comments, strings and
// keywords. A # begins a comment only after white space, since it also occurs in expansions of the
// shell.
var tokens = regexp.MustCompile(`(?m)(^//.*|\s//.*|^#.*|\s#.*)|("""[^"]*"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `)|\b(` +
	`and|as|async|await|break|case|catch|class|const|continue|def|default|defer|do|done|elif|else|esac|except|export|false|False|fi|finally|for|from|func|function|` +
	`global|go|if|import|in|is|let|local|map|new|nil|None|not|null|of|or|package|raise|range|return|select|struct|switch|then|throw|true|True|try|type|typeof|undefined|var|while|with)\b`)

// colored returns code as HTML with colored tokens. Its text does not change.
func colored(code string) template.HTML {
	var out strings.Builder
	end := 0
	for _, at := range tokens.FindAllStringSubmatchIndex(code, -1) {
		for i, class := range []string{"t-rem", "t-str", "t-key"} {
			if from, to := at[2+2*i], at[3+2*i]; from >= 0 {
				fmt.Fprintf(&out, `%s<span class="%s">%s</span>`, html.EscapeString(code[end:from]), class, html.EscapeString(code[from:to]))
				end = to
			}
		}
	}
	out.WriteString(html.EscapeString(code[end:]))
	return template.HTML(out.String()) //nolint:gosec // every part is escaped
}

// sampleAnswer returns the response to the examples' request, with a match.
func sampleAnswer() (template.HTML, error) {
	text, err := exampleFiles.ReadFile("_examples/answer.json")
	return colored(string(text)), err
}
