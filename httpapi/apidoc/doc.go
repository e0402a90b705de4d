// Package apidoc reads an OpenAPI document the way people do: operation by operation, with what each takes and
// answers, references followed and bounds in Polish words. The page /api is made of it once, at start.
//
// # Why
//
// A small reader of its own and not Swagger UI or Redoc: these are half a megabyte and more of script each, need
// inline styles that the content security policy refuses, show nothing without JavaScript, and speak English. Only what
// this project's document uses is read; a test holds every operation of it against the page.
package apidoc

import "html/template"

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
