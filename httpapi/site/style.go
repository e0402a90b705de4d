package site

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"regexp"
	"sync"
)

//go:embed first.css
var firstStyle string

// inlineStyle returns the part of the style that pages contain, without comments and indentation.
// With it, a browser draws an answer before anything else has arrived.
var inlineStyle = sync.OnceValue(func() template.CSS {
	short := regexp.MustCompile(`(?s)/\*.*?\*/|\n\s*`).ReplaceAllString(firstStyle, "")
	return template.CSS(short)
})

// StylePolicy returns the source expression by which a Content-Security-Policy admits only the
// style that pages contain.
func StylePolicy() string {
	sum := sha256.Sum256([]byte(inlineStyle()))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
