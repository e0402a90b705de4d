package apidoc

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// openAPI is the part of an OpenAPI document that is read. Mappings keep their order, which is also
// the page's.
type openAPI struct {
	Info struct {
		Version     string `yaml:"version"`
		Summary     string `yaml:"summary"`
		Description string `yaml:"description"`
	} `yaml:"info"`
	Tags []struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	} `yaml:"tags"`
	Paths ordered[struct {
		Get openOperation `yaml:"get"`
	}] `yaml:"paths"`
	Components struct {
		Parameters ordered[openParameter] `yaml:"parameters"`
		Responses  ordered[openResponse]  `yaml:"responses"`
		Schemas    ordered[openSchema]    `yaml:"schemas"`
	} `yaml:"components"`
}

type openOperation struct {
	OperationID string                `yaml:"operationId"`
	Tags        []string              `yaml:"tags"`
	Summary     string                `yaml:"summary"`
	Description string                `yaml:"description"`
	Parameters  []openParameter       `yaml:"parameters"`
	Responses   ordered[openResponse] `yaml:"responses"`
	Examples    []Example             `yaml:"x-examples"`
}

type openParameter struct {
	Ref         string     `yaml:"$ref"`
	Name        string     `yaml:"name"`
	In          string     `yaml:"in"`
	Required    bool       `yaml:"required"`
	Description string     `yaml:"description"`
	Schema      openSchema `yaml:"schema"`
}

type openResponse struct {
	Ref         string            `yaml:"$ref"`
	Description string            `yaml:"description"`
	Headers     ordered[struct{}] `yaml:"headers"`
	Content     ordered[struct {
		Schema openSchema `yaml:"schema"`
	}] `yaml:"content"`
}

type openSchema struct {
	Ref         string              `yaml:"$ref"`
	Title       string              `yaml:"title"`
	Description string              `yaml:"description"`
	Type        types               `yaml:"type"`
	Enum        []any               `yaml:"enum"`
	Const       any                 `yaml:"const"`
	Default     any                 `yaml:"default"`
	Minimum     *int64              `yaml:"minimum"`
	Maximum     *int64              `yaml:"maximum"`
	MinLength   *int64              `yaml:"minLength"`
	MaxLength   *int64              `yaml:"maxLength"`
	MinItems    *int64              `yaml:"minItems"`
	MaxItems    *int64              `yaml:"maxItems"`
	Pattern     string              `yaml:"pattern"`
	Items       *openSchema         `yaml:"items"`
	AllOf       []openSchema        `yaml:"allOf"`
	Properties  ordered[openSchema] `yaml:"properties"`
}

// types is one type or several.
type types []string

// UnmarshalYAML accepts a word or a list of words.
func (t *types) UnmarshalYAML(decode func(any) error) error {
	var one string
	if err := decode(&one); err == nil {
		*t = types{one}
		return nil
	}
	return decode((*[]string)(t))
}

func (t types) is(name string) bool { return len(t) == 1 && t[0] == name }

// ordered is a mapping that keeps the order of its keys.
type ordered[T any] struct {
	keys   []string
	values map[string]T
}

// UnmarshalYAML reads the mapping twice: for its order and for its values.
func (o *ordered[T]) UnmarshalYAML(decode func(any) error) error {
	var items yaml.MapSlice
	if err := decode(&items); err != nil {
		return err
	}
	for _, item := range items {
		o.keys = append(o.keys, fmt.Sprint(item.Key))
	}
	return decode(&o.values)
}

// follow returns the value that ref names in o, or v if ref is empty.
func (o ordered[T]) follow(ref string, v T) (T, error) {
	if ref == "" {
		return v, nil
	}
	v, ok := o.values[lastPart(ref)]
	if !ok {
		return v, fmt.Errorf("%s leads nowhere", ref)
	}
	return v, nil
}

// lastPart returns the last part of a reference's JSON pointer.
func lastPart(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// text formats a number for HTML, or returns "" for nil.
func text(n *int64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}
