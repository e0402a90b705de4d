package site

import _ "embed"

//go:embed favicon.ico
var favicon string

// Favicon is the site's icon in 16, 32 and 48 pixels.
func Favicon() []byte { return []byte(favicon) }
