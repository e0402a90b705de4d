// Package apidoc reads an OpenAPI document for people: operation by operation, with parameters and
// responses, references followed and bounds in Polish words. httpapi makes the page /api from it
// once, at start.
//
// # Promises
//
//   - Every operation, parameter, response and schema of the document is on the page, in the
//     document's order.
//   - The examples are whole programs that follow the page's rule for bots: any response that is not
//     a good one means "unknown", never "not listed". TestExamplesOfTheAPIPage and TestBotsOfTheAPIPage
//     (package httpapi) run them as the page shows them.
//   - The document's content is shown as text, except for descriptions, which are Markdown without
//     raw HTML.
//
// # Why
//
// This package is a small reader of our own, because Swagger UI and Redoc are half a megabyte of
// script and more, need inline styles that the content security policy refuses, show nothing
// without JavaScript, and speak English. It reads only the parts of OpenAPI that this project's
// document uses; a test compares every operation with the page.
package apidoc

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/yuin/goldmark"
)

// Doc is the part of an OpenAPI document that the page shows. It does not change after Read.
type Doc struct {
	Version, Summary string
	About            template.HTML
	Headers          []string // of every response
	Groups           []Group
	Schemas          []Schema
	Programs         Programs      // the same check in several languages
	Bots             Programs      // a bot that queries ranges
	DiscordBots      Programs      // a bot for the chat platform, with popular libraries
	Follower         Programs      // a copy of the lists in a browser
	SampleAnswer     template.HTML // JSON, indented
}

// Group has the operations of one tag, in the order of the document.
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
	Form              []Field // empty without parameters, or if one is in the path, which a form cannot fill
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name, Place string // Place in Polish
	Required    bool
	Bounds      string
	About       template.HTML
}

// Answer is one response of an operation.
type Answer struct {
	Status  string
	About   template.HTML
	Kinds   []string // media types
	Schema  string   // name of the schema, or empty
	Headers []string // besides those of every response
}

// Example is a request that this server serves.
type Example struct {
	Path    string `yaml:"path"`
	Summary string `yaml:"summary"`
}

// Field is an input of the form for trying an operation.
type Field struct {
	ID, Name           string
	Choices            []string // nil for a text or a number
	Default            string
	Value              string // from the first example; of a choice, else Default
	Number             bool
	Least, Most, Width string // bounds of a number and of a text's length; may be empty
	Required           bool
}

// Schema is a named data type.
type Schema struct {
	Name, Title string
	About       template.HTML
	Members     []Member
}

// Member is a member of an object, or the value itself if it has no name.
type Member struct {
	Name, Bounds, Schema string // Schema is the name that it links to, or empty
	About                template.HTML
}

// Read reads an OpenAPI document whose texts are Polish Markdown. Its operations may have
// x-examples, a list of path and summary. It fails if the document is not YAML or a reference has
// no target.
func Read(document []byte) (*Doc, error) {
	var in openAPI
	if err := yaml.Unmarshal(document, &in); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	doc, err := in.doc()
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	for _, set := range []struct {
		into        *Programs
		name, label string
		programs    []Program
	}{
		{&doc.Programs, "check", "Przykład", languages()}, {&doc.Bots, "bot", "Bot", languages()},
		{&doc.DiscordBots, "discordbot", "Bot na Discorda", libraries()},
		{&doc.Follower, "follow", "Kopia list", []Program{{ID: "js", Language: "W przeglądarce"}}},
	} {
		if *set.into, err = programs(set.name, set.label, set.programs); err != nil {
			return nil, err
		}
	}
	if doc.SampleAnswer, err = sampleAnswer(); err != nil {
		return nil, fmt.Errorf("examples: %w", err)
	}
	return doc, nil
}

// doc groups the operations by their first tag.
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
	doc.factorHeaders()
	return doc, nil
}

// factorHeaders moves the headers that all responses share from the responses to doc. They would be
// an eighth of the page.
func (doc *Doc) factorHeaders() {
	var answers []*Answer
	for _, g := range doc.Groups {
		for _, o := range g.Operations {
			for i := range o.Answers {
				answers = append(answers, &o.Answers[i])
			}
		}
	}
	if len(answers) == 0 {
		return
	}
	for _, name := range answers[0].Headers {
		lacks := func(a *Answer) bool { return !slices.Contains(a.Headers, name) }
		if !slices.ContainsFunc(answers, lacks) {
			doc.Headers = append(doc.Headers, name)
		}
	}
	for _, a := range answers {
		var own []string // responses share the document's slice
		for _, name := range a.Headers {
			if !slices.Contains(doc.Headers, name) {
				own = append(own, name)
			}
		}
		a.Headers = own
	}
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
	o.fill()
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

// fill sets the form's values from the first example with parameters.
func (o *Operation) fill() {
	for _, e := range o.Examples {
		_, raw, _ := strings.Cut(e.Path, "?")
		values, err := url.ParseQuery(raw)
		if err != nil || len(values) == 0 {
			continue
		}
		for i := range o.Form {
			f := &o.Form[i]
			f.Value = cmp.Or(values.Get(f.Name), f.Value)
		}
		return
	}
}

func (r openResponse) answer(status string) Answer {
	if status == "default" {
		status = "inne"
	}
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
	if f.Choices != nil {
		f.Value = f.Default
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

// markdown renders a description without its raw HTML.
func markdown(source string) template.HTML {
	var out strings.Builder
	if err := goldmark.Convert([]byte(source), &out); err != nil {
		return template.HTML(template.HTMLEscapeString(source)) //nolint:gosec // escaped
	}
	return template.HTML(strings.TrimSpace(out.String())) //nolint:gosec // goldmark escapes
}

// place returns the place of a parameter in Polish.
func place(in string) string {
	switch in {
	case "path":
		return "w ścieżce"
	case "header":
		return "nagłówek"
	}
	return "w zapytaniu"
}

// target returns the name of the schema that s or its items refer to, or "".
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

// bounds returns the bounds of a value in Polish.
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
		add("jedna z wartości: %s", list(s.Enum))
	case len(s.Type) > 0:
		add("%s", s.Type.polish())
	}
	for _, r := range []struct {
		least, most *int64
		noun        func(int64) string
	}{
		{s.Minimum, s.Maximum, func(int64) string { return "" }}, {s.MinLength, s.MaxLength, characters}, {s.MinItems, s.MaxItems, elements},
	} {
		if text := span(r.least, r.most); text != "" {
			parts = append(parts, text+r.noun(*cmp.Or(r.most, r.least)))
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

// span returns the bounds of a number in Polish, or "" if there are none.
func span(least, most *int64) string {
	switch {
	case least != nil && most != nil && *least == *most:
		return fmt.Sprint(*least)
	case least != nil && most != nil:
		return fmt.Sprintf("%d–%d", *least, *most)
	case least != nil:
		return fmt.Sprintf("co najmniej %d", *least)
	case most != nil:
		return fmt.Sprintf("najwyżej %d", *most)
	}
	return ""
}

// characters and elements return n with its unit, after a space.
func characters(n int64) string { return polishPlural(n, " znak", " znaki", " znaków") }
func elements(n int64) string   { return polishPlural(n, " element", " elementy", " elementów") }

func polishPlural(n int64, one, few, many string) string {
	switch {
	case n == 1:
		return one
	case n%10 >= 2 && n%10 <= 4 && n%100/10 != 1:
		return few
	}
	return many
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
