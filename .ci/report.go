package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// event is what go doc test2json describes.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// report reads what go test -json writes, and prints it as go test does: a line for each package, and
// the output of what failed. It appends to notes a line for each test, "passed" or "skipped" with the
// reason, from which .ci/run makes its last lines.
func report(notes *os.File) error {
	output := map[[2]string]*strings.Builder{} // by package and test
	in := bufio.NewReader(os.Stdin)
	for line, err := in.ReadString('\n'); err == nil; line, err = in.ReadString('\n') {
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			fmt.Print(line) // of go itself
			continue
		}
		key := [2]string{e.Package, e.Test}
		if output[key] == nil {
			output[key] = &strings.Builder{}
		}
		switch name := strings.TrimPrefix(e.Package, "example.org/registry/"); {
		case e.Action == "build-output":
			fmt.Print(e.Output)
		case e.Action == "output":
			output[key].WriteString(e.Output)
		case e.Action == "fail":
			for of, text := range output { // of a package also what it was at when it died
				if of == key || e.Test == "" && of[0] == e.Package {
					fmt.Print(text)
				}
			}
		case e.Test == "" && e.Action == "pass":
			fmt.Printf("ok   %7.1f s  %s\n", e.Elapsed, name)
		case e.Action == "skip" && e.Test != "":
			why := ""
			for text := range strings.Lines(output[key].String()) {
				if !strings.HasPrefix(text, "=== ") && !strings.Contains(text, "--- SKIP") {
					why += " " + strings.TrimSpace(text)
				}
			}
			fmt.Fprintf(notes, "skipped %s %s:%s\n", name, e.Test, why)
		case e.Action == "pass":
			fmt.Fprintf(notes, "passed %s %s:\n", name, e.Test)
		}
		if e.Test != "" && (e.Action == "pass" || e.Action == "skip" || e.Action == "fail") {
			delete(output, key)
		}
	}
	return notes.Close()
}
