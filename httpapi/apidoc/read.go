package apidoc

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/yuin/goldmark"
)

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
