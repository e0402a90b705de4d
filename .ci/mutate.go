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

// mutation is a change that breaks the program. A test in pkg that run matches must fail.
type mutation struct {
	title    string
	pkg, run string
	edits    []edit
}

type edit struct{ file, old, new string }

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
		hasWord := func(word string) bool { return strings.Contains(m.title+m.pkg+m.run, word) }
		isWanted := len(words) == 0 || slices.ContainsFunc(words, hasWord)
		if !isWanted {
			continue
		}
		result := m.try(dir)
		if result != "red" {
			unnoticed++
		}
		fmt.Printf("%-8s %s (%s)\n", result, m.title, m.run)
	}

	if unnoticed > 0 {
		return fmt.Errorf("%d mutations that no test notices, or that do not fit the program", unnoticed)
	}
	return nil
}

// try returns "red", or the reason why no test was red: "green", "stale" if the program no longer has
// the lines, or the error of the build.
func (m mutation) try(dir string) string {
	for _, e := range m.edits {
		name := filepath.Join(dir, e.file)
		text, err := os.ReadFile(name)
		if err != nil || strings.Count(string(text), e.old) != 1 {
			return "stale"
		}
		defer os.WriteFile(name, text, 0o644) // the next mutation needs the old text
		if err := os.WriteFile(name, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o644); err != nil {
			return err.Error()
		}
	}

	// The first command runs no test: it only tells a program that does not build from a red test.
	build := exec.Command("go", "test", "-tags", "nightly", "-vet=off", "-run", "^$", m.pkg)
	test := exec.Command("go", "test", "-tags", "nightly", "-vet=off", "-count=1", "-timeout=10m", "-run", "^("+m.run+")$", m.pkg)
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
		isUnderstood := len(all) > 0 && all[len(all)-1].addLine(line)
		if !isUnderstood {
			return nil, fmt.Errorf("%s:%d: %q", name, n+1, line)
		}
	}
	return all, nil
}

// addLine adds a line of the list to the mutation. It returns false if the line has no meaning at its
// place in the list.
func (m *mutation) addLine(line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "red":
		m.pkg, m.run, _ = strings.Cut(rest, " ")
		return true
	case "in":
		m.edits = append(m.edits, edit{file: rest})
		return true
	}

	if len(m.edits) == 0 {
		return false
	}

	e := &m.edits[len(m.edits)-1]
	switch line[0] { // TrimPrefix removes the line break before the first line
	case '-':
		e.old = strings.TrimPrefix(e.old+"\n"+line[1:], "\n")
	case '+':
		e.new = strings.TrimPrefix(e.new+"\n"+line[1:], "\n")
	default:
		return false
	}
	return true
}
