// Command mutate tries the mutations of the program that .ci/mutations.txt lists, in a copy of the
// module, and fails if no test notices one:
//
//	go run .ci/mutate.go [WORD…]   the mutations with a WORD in their text; without words, all
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const listFile = ".ci/mutations.txt"

// mutation is a change that breaks the program, so that a test must fail.
type mutation struct {
	title      string
	pkg, tests string // the package, and a pattern of the tests there
	edits      []edit
}

// edit replaces the lines old of a file by the lines new.
type edit struct {
	file     string
	old, new []string
}

func main() {
	if err := mutate(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mutate tries the mutations with any of the words in their text, or all mutations if there are no words.
func mutate(words []string) error {
	all, err := readMutations(listFile)
	if err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "registry-mutations")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	copyModule := exec.Command("sh", "-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$0"`, dir)
	if out, err := copyModule.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the module: %w: %s", err, out)
	}

	unnoticed := 0
	for _, m := range all {
		isInText := func(word string) bool { return strings.Contains(m.title+m.pkg+m.tests, word) }
		if len(words) > 0 && !slices.ContainsFunc(words, isInText) {
			continue
		}

		result := m.try(dir)
		if result != "red" {
			unnoticed++
		}
		fmt.Printf("%-8s %s (%s)\n", result, m.title, m.tests)
	}

	if unnoticed > 0 {
		return fmt.Errorf("%d mutations that no test notices, or that do not fit the program", unnoticed)
	}
	return nil
}

// try makes the edits in dir, runs the tests, and takes the edits back. It returns "red", or why no test was red:
// "green", "stale" if the program does not have the old lines exactly once, or the error of the build.
func (m mutation) try(dir string) string {
	for _, e := range m.edits {
		name := filepath.Join(dir, e.file)
		text, err := os.ReadFile(name)
		old := strings.Join(e.old, "\n")
		if err != nil || strings.Count(string(text), old) != 1 {
			return "stale"
		}

		edited := strings.Replace(string(text), old, strings.Join(e.new, "\n"), 1)
		defer os.WriteFile(name, text, 0o644)
		if err := os.WriteFile(name, []byte(edited), 0o644); err != nil {
			return err.Error()
		}
	}

	// Build first, without running a test: a program that does not build must not pass for a red test.
	build := exec.Command("go", "test", "-tags", "nightly", "-vet=off", "-run", "^$", m.pkg)
	test := exec.Command("go", "test", "-tags", "nightly", "-vet=off", "-count=1", "-timeout=10m", "-run", "^("+m.tests+")$", m.pkg)
	for _, c := range []*exec.Cmd{build, test} {
		c.Dir = dir
		c.Env = append(os.Environ(), "RAPID_SEED=1", "RAPID_NOFAILFILE=true", "RAPID_SHRINKTIME=1s")
	}

	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Sprintf("does not build: %s", out)
	}
	if err := test.Run(); err == nil {
		return "green"
	}
	return "red"
}

// readMutations reads the list. The line "= TITLE" begins a mutation, "red PACKAGE TEST|TEST" names its
// tests, and "in FILE" begins an edit: each old line follows a "-", and each new line a "+".
func readMutations(name string) ([]mutation, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}

	var all []mutation
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if title, ok := strings.CutPrefix(line, "= "); ok {
			all = append(all, mutation{title: title})
			continue
		}

		isUnderstood := false
		if len(all) > 0 {
			isUnderstood = all[len(all)-1].addLine(line)
		}
		if !isUnderstood {
			return nil, fmt.Errorf("%s:%d: %q", name, n+1, line)
		}
	}
	return all, nil
}

// addLine adds a line of the list to the mutation. It returns false if the line does not begin as it should.
func (m *mutation) addLine(line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "red":
		m.pkg, m.tests, _ = strings.Cut(rest, " ")
		return true
	case "in":
		m.edits = append(m.edits, edit{file: rest})
		return true
	}

	if len(m.edits) == 0 {
		return false
	}

	e := &m.edits[len(m.edits)-1]
	switch line[0] {
	case '-':
		e.old = append(e.old, line[1:])
		return true
	case '+':
		e.new = append(e.new, line[1:])
		return true
	}
	return false
}
