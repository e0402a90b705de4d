// Package apidoc reads an OpenAPI document the way people do: operation by operation, with what each takes and
// answers, references followed and bounds in Polish words. The page /api is made of it once, at start.
//
// # Why
//
// A small reader of its own and not Swagger UI or Redoc: these are half a megabyte and more of script each, need
// inline styles that the content security policy refuses, show nothing without JavaScript, and speak English. Only what
// this project's document uses is read; a test holds every operation of it against the page.
package apidoc

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/yuin/goldmark"
)

// Doc is an OpenAPI document as far as people read it. It is not changed after Read.
type Doc struct {
	Version, Summary string
	About            template.HTML
	Groups           []Group
	Schemas          []Schema
}

// Group is the operations of one tag, in the order of the document.
type Group struct {
	Name, About string
	Operations  []Operation
}

// Operation is one GET.
type Operation struct {
	ID, Path, Summary string
	About             template.HTML
	Parameters        []Parameter
	Answers           []Answer
	Examples          []Example
	Form              []Field // empty: there is nothing to fill in, or a form cannot fill the path
}

// Parameter is what an operation takes.
type Parameter struct {
	Name, Place string // Place in Polish
	Required    bool
	Bounds      string
	About       template.HTML
}

// Answer is one status that an operation may answer with.
type Answer struct {
	Status  string
	About   template.HTML
	Kinds   []string // media types
	Schema  string   // name of the schema; empty: none
	Headers []string
}

// Example is the address of a question that this very server answers.
type Example struct {
	Path    string `yaml:"path"`
	Summary string `yaml:"summary"`
}

// Field is one input of the form that tries an operation out.
type Field struct {
	ID, Name           string
	Choices            []string // of a list to choose from; nil: a text or a number
	Default            string
	Number             bool
	Least, Most, Width string // bounds of a number, and of a text's length; empty: none
	Required           bool
}

// Schema is a named shape of data.
type Schema struct {
	Name, Title string
	About       template.HTML
	Members     []Member
}

// Member is one member of an object, or, without a name, the value itself.
type Member struct {
	Name, Bounds, Schema string // Schema is the name of the one it links to; empty: none
	About                template.HTML
}

// Read reads an OpenAPI document whose texts are Polish Markdown. Its operations may have x-examples: a list of path
// and summary.
func Read(document []byte) (*Doc, error) {
	var in openAPI
	if err := yaml.Unmarshal(document, &in); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	doc, err := in.doc()
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	return doc, nil
}

// doc arranges the document by its tags.
func (in *openAPI) doc() (*Doc, error) {
	doc := &Doc{Version: in.Info.Version, Summary: in.Info.Summary, About: markdown(in.Info.Description)}
	for _, tag := range in.Tags {
		group := Group{Name: tag.Name, About: tag.Description}
		for _, path := range in.Paths.keys {
			get := in.Paths.values[path].Get
			if len(get.Tags) == 0 || get.Tags[0] != tag.Name {
				continue
			}
			o, err := in.operation(path, get)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			group.Operations = append(group.Operations, o)
		}
		doc.Groups = append(doc.Groups, group)
	}
	for _, name := range in.Components.Schemas.keys {
		doc.Schemas = append(doc.Schemas, in.schema(name))
	}
	return doc, nil
}

func (in *openAPI) operation(path string, get openOperation) (Operation, error) {
	o := Operation{ID: get.OperationID, Path: path, Summary: get.Summary, About: markdown(get.Description), Examples: get.Examples}
	inPath := false
	for _, p := range get.Parameters {
		p, err := in.Components.Parameters.follow(p.Ref, p)
		if err != nil {
			return o, err
		}
		o.Parameters = append(o.Parameters, Parameter{
			Name: p.Name, Place: place(p.In), Required: p.Required, Bounds: p.Schema.bounds(), About: markdown(p.Description)})
		inPath = inPath || p.In == "path"
		if p.In == "query" {
			o.Form = append(o.Form, p.field(o.ID))
		}
	}
	if inPath {
		o.Form = nil
	}
	for _, status := range get.Responses.keys {
		r := get.Responses.values[status]
		r, err := in.Components.Responses.follow(r.Ref, r)
		if err != nil {
			return o, err
		}
		o.Answers = append(o.Answers, r.answer(status))
	}
	return o, nil
}

func (r openResponse) answer(status string) Answer {
	a := Answer{Status: status, About: markdown(r.Description), Headers: r.Headers.keys, Kinds: r.Content.keys}
	for _, kind := range r.Content.keys {
		if ref := r.Content.values[kind].Schema.Ref; ref != "" {
			a.Schema = lastPart(ref)
		}
	}
	return a
}

func (p openParameter) field(operation string) Field {
	f := Field{ID: operation + "-" + p.Name, Name: p.Name, Required: p.Required, Number: p.Schema.Type.is("integer")}
	for _, choice := range p.Schema.Enum {
		f.Choices = append(f.Choices, fmt.Sprint(choice))
	}
	if p.Schema.Default != nil {
		f.Default = fmt.Sprint(p.Schema.Default)
	}
	f.Least, f.Most, f.Width = text(p.Schema.Minimum), text(p.Schema.Maximum), text(p.Schema.MaxLength)
	return f
}

func (in *openAPI) schema(name string) Schema {
	s := in.Components.Schemas.values[name]
	out := Schema{Name: name, Title: s.Title, About: markdown(s.Description)}
	if len(s.Properties.keys) == 0 {
		out.Members = []Member{{Bounds: s.bounds()}}
	}
	for _, key := range s.Properties.keys {
		p := s.Properties.values[key]
		out.Members = append(out.Members, Member{Name: key, Bounds: p.bounds(), Schema: p.target(), About: markdown(p.Description)})
	}
	return out
}

// markdown renders a description. Raw HTML is left out, and the document is our own.
func markdown(source string) template.HTML {
	var out strings.Builder
	if err := goldmark.Convert([]byte(source), &out); err != nil {
		return template.HTML(template.HTMLEscapeString(source)) //nolint:gosec // escaped
	}
	return template.HTML(strings.TrimSpace(out.String())) //nolint:gosec // goldmark escapes
}

// place is where a parameter goes.
func place(in string) string {
	switch in {
	case "path":
		return "w ścieżce"
	case "header":
		return "nagłówek"
	}
	return "w zapytaniu"
}
