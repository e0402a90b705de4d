// Command generate writes the tables of package lookalike out of the data files of Unicode that
// stand in its testdata. Run it in readmodel/lookalike, by go generate.
//
// Another version of Unicode is a new copy of both files, a go generate, and a new
// readmodel.RenderVersion: stored keys are then made anew.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run("testdata", "tables.go"); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run reads the data files in dir and writes the Go file out.
func run(dir, out string) error {
	source, err := tables(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(out, source, 0o644)
}
