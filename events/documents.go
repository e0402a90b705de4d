package events

import (
	"embed"
	"io/fs"
)

//go:embed asyncapi.yaml
var asyncAPI []byte

//go:embed schemas/*.json
var schemas embed.FS

// AsyncAPI is the AsyncAPI 3.0 document of the events, in YAML, with their schemas inside.
// The caller may keep and change the copy.
func AsyncAPI() []byte { return append([]byte(nil), asyncAPI...) }

// Schemas holds the JSON Schemas (2020-12): event.json for any event, and what it refers to
// by urn:registry:schema:<name>: envelope.json and one file for each shape of data.
func Schemas() fs.FS {
	sub, err := fs.Sub(schemas, "schemas")
	if err != nil {
		panic(err) // only for an invalid name, and this one is constant
	}
	return sub
}
