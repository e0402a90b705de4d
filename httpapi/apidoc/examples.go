package apidoc

import "embed"

// Address stands for the service's own address in the examples. Whoever shows the page replaces it.
const Address = "https://registry.example"

// The leading _ keeps the Go command from taking the example in Go for a package of this module.
//
//go:embed _examples
var exampleFiles embed.FS

// Program is an example of a whole program in one language.
type Program struct{ ID, Language, Code string }

// programs returns the example of that name in every language.
func programs(name string) ([]Program, error) {
	all := []Program{{ID: "sh", Language: "curl"}, {ID: "mjs", Language: "JavaScript"}, {ID: "py", Language: "Python"}, {ID: "go", Language: "Go"}}
	for i := range all {
		text, err := exampleFiles.ReadFile("_examples/" + name + "." + all[i].ID)
		if err != nil {
			return nil, err
		}
		all[i].Code = string(text)
	}
	return all, nil
}

// sampleAnswer returns what the examples' request is answered with where somebody is found.
func sampleAnswer() (string, error) {
	text, err := exampleFiles.ReadFile("_examples/answer.json")
	return string(text), err
}
