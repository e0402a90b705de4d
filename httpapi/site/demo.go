package site

import "net/url"

// Question is a text to try in a demonstration.
type Question struct{ Text, Asked string }

// Link returns the address of its answer.
func (q Question) Link() string { return "/?" + url.Values{"search": {q.Asked}}.Encode() }
