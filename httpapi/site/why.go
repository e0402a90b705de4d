package site

import (
	"strings"

	"example.org/registry/readmodel/lookalike"
)

// why says in Polish what makes a name look like what was searched for.
func why(name, search string) string {
	w := lookalike.Explain(name, search)
	var reasons []string
	for _, l := range w.Letters[:min(len(w.Letters), 3)] {
		reasons = append(reasons, letter(l))
	}
	for _, l := range w.Marks[:min(len(w.Marks), 3)] {
		reasons = append(reasons, "„"+string(l.Rune)+"” to nie „"+l.Looks+"”")
	}
	if w.Hidden {
		reasons = append(reasons, "są w niej lub w pytaniu niewidoczne znaki")
	}
	if len(reasons) == 0 {
		return "Podobna, bo wygląda prawie tak samo."
	}
	return "Podobna, bo " + strings.Join(reasons, "; ") + "."
}

func letter(l lookalike.Letter) string {
	kind := "znak"
	switch {
	case '0' <= l.Rune && l.Rune <= '9':
		kind = "cyfra"
	case lookalike.Script(l.Rune) == "Cyrillic":
		kind = "litera cyrylicy"
	case lookalike.Script(l.Rune) == "Greek":
		kind = "litera grecka"
	}
	return kind + " „" + string(l.Rune) + "” wygląda jak „" + l.Looks + "”"
}
