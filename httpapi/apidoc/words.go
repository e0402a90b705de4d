package apidoc

import (
	"fmt"
	"strings"
)

// target is the name of the schema that s refers to, itself or by its items; empty: none.
func (s openSchema) target() string {
	switch {
	case s.Ref != "":
		return lastPart(s.Ref)
	case s.Items != nil:
		return s.Items.target()
	}
	for _, part := range s.AllOf {
		if name := part.target(); name != "" {
			return name
		}
	}
	return ""
}

// bounds says in Polish what a value may be.
func (s openSchema) bounds() string {
	if s.Ref != "" {
		return ""
	}
	var parts []string
	add := func(format string, v any) { parts = append(parts, fmt.Sprintf(format, v)) }
	switch {
	case s.Const != nil:
		add("zawsze %v", s.Const)
	case len(s.Enum) > 0:
		add("jedno z: %s", list(s.Enum))
	case len(s.Type) > 0:
		add("%s", s.Type.polish())
	}
	for _, bound := range []struct {
		format string
		value  *int64
	}{
		{"od %d", s.Minimum}, {"do %d", s.Maximum}, {"znaków co najmniej %d", s.MinLength}, {"znaków najwyżej %d", s.MaxLength},
		{"elementów co najmniej %d", s.MinItems}, {"elementów najwyżej %d", s.MaxItems},
	} {
		if bound.value != nil {
			add(bound.format, *bound.value)
		}
	}
	if s.Pattern != "" {
		add("wzór %s", s.Pattern)
	}
	if s.Default != nil {
		add("domyślnie %v", s.Default)
	}
	return strings.Join(parts, ", ")
}

func (t types) polish() string {
	words := make([]string, len(t))
	for i, name := range t {
		switch name {
		case "string":
			words[i] = "tekst"
		case "integer":
			words[i] = "liczba całkowita"
		case "boolean":
			words[i] = "true albo false"
		case "array":
			words[i] = "tablica"
		case "object":
			words[i] = "obiekt"
		default:
			words[i] = name
		}
	}
	return strings.Join(words, " albo ")
}

func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}
