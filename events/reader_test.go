package events

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// thing is a type for TestOptionalMember to read.
type thing struct{ name, color string }

// A member that older events lack is optional: it is read where it is, and says its zero value
// where it is not.
func TestOptionalMember(t *testing.T) {
	for text, want := range map[string]struct{ name, color, problem string }{
		`{"name":"a","color":"red"}`: {"a", "red", ""},
		`{"color":"red","name":"a"}`: {"a", "red", ""},
		`{"name":"a"}`:               {"a", "", ""},
		`{"name":"a","other":[{}]}`:  {"a", "", ""},
		`{"color":"red"}`:            {"", "red", "data.name: missing"},
		`{"name":"a","color":null}`:  {"a", "", "data.color: must be a string"},
	} {
		var got thing
		err := readObject(reader{dec: jsontext.NewDecoder(strings.NewReader(text))}, "data", []member[thing]{
			{"name", func(r reader, to *thing) error { return r.text("data.name", &to.name) }, false},
			{"color", func(r reader, to *thing) error { return r.text("data.color", &to.color) }, true},
		}, &got)
		if got.name != want.name || got.color != want.color || (err == nil) != (want.problem == "") || err != nil && err.Error() != want.problem {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
