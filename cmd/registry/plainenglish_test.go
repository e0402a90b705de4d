//go:build prose

package main

import (
	"path/filepath"
	"regexp"
	"testing"
)

// TestPlainEnglish keeps phrases out of comments and pages that have a plainer form: those that hide
// who acts, that make a sentence be read twice, British spellings, and numbers that cannot be pasted.
func TestPlainEnglish(t *testing.T) {
	h := readHouse(t)
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	for _, plain := range []struct{ pattern, instead string }{
		{`(?i)\bwho(m|se)?ever\b`, "name who acts: a client, a visitor, the caller"},
		{`(?i)\bof\s(which|whom)\b`, "two sentences, or whose"},
		{`(?i)\b(anew|in\svain|hence|for\sever)\b`, "again, useless, so, forever"},
		{`(?i)\bprocessors?\b`, "CPU"},
		{`\bNil: `, "if nil, …"},
		{`(^|[^\d+ ])\s?[1-9]\d{0,2} \d{3}\b`, "1,000"},
		{`\d %`, "50%"},
		{`(?i)\w*(colour|behaviour|favour|neighbour|(recogni|organi|normali|initiali|optimi)s(e|i)|cknowledgement)\w*`, "US spelling"},
		{`(?i)\b(cent(re|red|res)|analys(e|ed|es|ing)|cancelled|licences?|labelled|grey|whilst|judgement)\b`, "US spelling"},
	} {
		wrong := regexp.MustCompile(plain.pattern)
		for _, c := range h.citations {
			if !c.page && filepath.Ext(c.file) != ".go" {
				continue
			}
			for _, phrase := range wrong.FindAllString(code.ReplaceAllString(c.text, ""), -1) {
				t.Errorf("%s: %q; write %s", c.file, phrase, plain.instead)
			}
		}
	}
}
