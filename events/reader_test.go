package events

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

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
		var name, color string
		r := reader{dec: jsontext.NewDecoder(strings.NewReader(text))}
		err := r.object("data", []string{"name"}, []string{"color"}, func(member string) error {
			switch member {
			case "name":
				return r.text("data.name", &name)
			case "color":
				return r.text("data.color", &color)
			}
			return errUnread
		})
		if name != want.name || color != want.color || (err == nil) != (want.problem == "") || err != nil && err.Error() != want.problem {
			t.Errorf("%s: %q, %q, %v", text, name, color, err)
		}
	}
}

// A name without a case that reads it fails the first event that has it.
func TestUnreadMember(t *testing.T) {
	r := reader{dec: jsontext.NewDecoder(strings.NewReader(`{"name":"a"}`))}
	if err := r.object("data", nil, []string{"name"}, func(string) error { return errUnread }); !errors.Is(err, errUnread) {
		t.Error(err)
	}
}
