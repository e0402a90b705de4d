// Command gate is what .ci/run and .ci/protections need besides the shell:
//
//	go run .ci/*.go report NOTES          what go test -json writes, in the form of go test
//	go run .ci/*.go protections [WORD…]   takes protections out, and demands that a test notices
//	go run .ci/*.go stale                 which of them the program no longer has
package main

import (
	"fmt"
	"os"
)

func main() {
	err := fmt.Errorf("usage: see the package's documentation")
	switch {
	case len(os.Args) == 3 && os.Args[1] == "report":
		var notes *os.File
		if notes, err = os.OpenFile(os.Args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			err = report(notes)
		}
	case len(os.Args) == 2 && os.Args[1] == "stale":
		err = stale()
	case len(os.Args) > 1 && os.Args[1] == "protections":
		err = protections(os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
