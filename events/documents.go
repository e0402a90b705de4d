package events

import (
	"bytes"
	_ "embed"
)

//go:embed asyncapi.yaml
var asyncAPI []byte

// AsyncAPI returns the AsyncAPI 3.0 document of the events, in YAML, with their JSON Schemas
// inside. The caller owns the copy.
func AsyncAPI() []byte { return bytes.Clone(asyncAPI) }
