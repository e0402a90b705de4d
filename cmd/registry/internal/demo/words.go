package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

//go:embed demo.json
var wordsJSON []byte

// words is demo.json: invented names and texts. Words in braces are replaced from Fill.
type words struct {
	Nicks       nickWords           `json:"nicks"`
	Servers     serverWords         `json:"servers"`
	Fill        map[string][]string `json:"fill"`
	Scams       []scamKind          `json:"scams"`
	ServerTexts []string            `json:"serverTexts"`
	LegitTexts  []string            `json:"legitTexts"`
	Endings     []string            `json:"endings"`
}

type nickWords struct {
	First  []string `json:"first"`
	Second []string `json:"second"`
	Plain  []string `json:"plain"`
}

type serverWords struct {
	Lead []string `json:"lead"`
	What []string `json:"what"`
	Tail []string `json:"tail"`
}

// scamKind is one way of cheating; Weight is its relative frequency.
type scamKind struct {
	Title  string   `json:"title"`
	Weight int      `json:"weight"`
	Texts  []string `json:"texts"`
}

func readWords() (*words, error) {
	var w words
	if err := json.Unmarshal(wordsJSON, &w); err != nil {
		return nil, fmt.Errorf("demonstration texts: %w", err)
	}
	return &w, nil
}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// scam writes the reason of a report: a heading, what happened, and often a closing remark.
func (w *words) scam(rng *rand.Rand) string {
	kind := w.kind(rng)
	text := "**" + kind.Title + ".** " + w.fill(rng, pick(rng, kind.Texts))
	if end := w.fill(rng, pick(rng, w.Endings)); end != "" {
		text += "\n\n" + end
	}
	return text
}

// kind draws a way of cheating by weight.
func (w *words) kind(rng *rand.Rand) scamKind {
	total := 0
	for _, k := range w.Scams {
		total += k.Weight
	}
	n := rng.IntN(total)
	for _, k := range w.Scams {
		if n -= k.Weight; n < 0 {
			return k
		}
	}
	return w.Scams[0]
}

// fill replaces every {word} of text by one of its fillings.
func (w *words) fill(rng *rand.Rand, text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		word, after, _ := strings.Cut(rest, "}")
		out.WriteString(pick(rng, w.Fill[word]))
		text = after
	}
}

// nick invents a nickname in one of the shapes people choose.
func (w *words) nick(rng *rand.Rand) string {
	n := w.Nicks
	first, second, plain := pick(rng, n.First), pick(rng, n.Second), pick(rng, n.Plain)
	switch rng.IntN(6) {
	case 0:
		return first + " " + second
	case 1:
		return strings.ToLower(first + "." + second)
	case 2:
		return fmt.Sprintf("%s%d", plain, 1990+rng.IntN(34))
	case 3:
		return "xX_" + plain + "_Xx"
	case 4:
		return fmt.Sprintf("%s_%s%02d", first, second, rng.IntN(100))
	}
	return plain + second
}

// serverName invents the name of a server.
func (w *words) serverName(rng *rand.Rand) string {
	s := w.Servers
	return pick(rng, s.Lead) + " " + pick(rng, s.What) + " " + pick(rng, s.Tail)
}
