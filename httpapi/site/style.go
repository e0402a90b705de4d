package site

import _ "embed"

//go:embed assets/site.css
var styleSheet string

// StyleSheet returns the style sheet of every page, for pages outside the site that are to look
// like it.
func StyleSheet() []byte { return []byte(styleSheet) }
