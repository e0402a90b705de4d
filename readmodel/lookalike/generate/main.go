// Command generate writes the tables of package lookalike (tables.txt) from the Unicode data files
// in its testdata. Run it in readmodel/lookalike with go generate.
//
// For another version of Unicode, replace both files, run go generate and raise
// readmodel.RenderVersion, so that stored keys are rebuilt.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run("testdata", "tables.txt"); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run reads the data files in dir and writes the file out.
func run(dir, out string) error {
	source, err := tables(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(out, source, 0o644)
}
