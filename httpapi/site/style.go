package site

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"regexp"
)

var (
	//go:embed first.css
	firstStyle string
	//go:embed assets/site.css
	restStyle string
)

// StyleSheet returns the style of every page, for pages outside the site that are to look like it.
func StyleSheet() []byte { return []byte(firstStyle + restStyle) }

// inlineStyle is the part of the style that pages contain, without comments and indentation. A
// browser draws an answer with it before anything else has come.
func inlineStyle() template.CSS {
	short := regexp.MustCompile(`(?s)/\*.*?\*/|\n\s*`).ReplaceAllString(firstStyle, "")
	return template.CSS(short)
}

// StylePolicy returns the source by which a Content-Security-Policy admits the style that pages
// contain, and no other.
func StylePolicy() string {
	sum := sha256.Sum256([]byte(inlineStyle()))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
