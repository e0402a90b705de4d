package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// protection is an edit that takes a protection out of the program, and the tests that guard it: after
// the edit at least one of them must be red.
type protection struct {
	says     string
	pkg, run string
	edits    []edit
}

type edit struct{ file, old, new string }

// stale prints the protections of .ci/protections.txt whose lines the program no longer has.
func stale() error {
	all, err := readProtections(".ci/protections.txt")
	for _, p := range all {
		for _, e := range p.edits {
			if _, fits := e.read("."); !fits {
				fmt.Println("protections.txt is behind the program:", p.says)
			}
		}
	}
	return err
}

// read returns the file that the edit is for, below dir, and whether it has the old lines, once.
func (e edit) read(dir string) (text []byte, fits bool) {
	text, err := os.ReadFile(filepath.Join(dir, e.file))
	return text, err == nil && strings.Count(string(text), e.old) == 1
}

// protections takes out, in a copy of the module, every protection of .ci/protections.txt whose
// text has one of the words, and fails if no test notices.
func protections(words []string) error {
	all, err := readProtections(".ci/protections.txt")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "registry-protections")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	copied := exec.Command("sh", "-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$0"`, dir)
	if out, err := copied.CombinedOutput(); err != nil {
		return fmt.Errorf("copy the module: %w: %s", err, out)
	}
	green := 0
	for _, p := range all {
		if len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(p.says+p.pkg+p.run, w) }) {
			continue
		}
		result := p.try(dir)
		if result != "red" {
			green++
		}
		fmt.Printf("%-8s %s (%s)\n", result, p.says, p.run)
	}
	if green > 0 {
		return fmt.Errorf("%d protections can be taken out, and no test notices", green)
	}
	return nil
}

// try returns "red", or what is wrong: "green", or "stale" if the program no longer has the lines.
func (p protection) try(dir string) string {
	for _, e := range p.edits {
		name := filepath.Join(dir, e.file)
		text, fits := e.read(dir)
		if !fits {
			return "stale"
		}
		defer os.WriteFile(name, text, 0o644)
		if err := os.WriteFile(name, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o644); err != nil {
			return err.Error()
		}
	}
	build := exec.Command("go", "test", "-vet=off", "-run", "^$", p.pkg)
	test := exec.Command("go", "test", "-vet=off", "-count=1", "-timeout=10m", "-run", "^("+p.run+")$", p.pkg)
	for _, c := range []*exec.Cmd{build, test} {
		c.Dir = dir
		c.Env = append(os.Environ(), "REGISTRY_TESTS=all", "RAPID_SEED=1", "RAPID_NOFAILFILE=true", "RAPID_SHRINKTIME=1s")
	}
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Sprintf("does not build: %s", out)
	}
	if err := test.Run(); err == nil {
		return "green"
	}
	return "red"
}

// readProtections reads the list. "= " begins a protection and says what it is; "red PACKAGE TEST|TEST"
// names the tests; "in FILE" begins an edit, whose lines are the old ones after "-" and the new ones
// after "+".
func readProtections(name string) (all []protection, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(string(text), "\n") {
		var p *protection
		if len(all) > 0 {
			p = &all[len(all)-1]
		}
		var e *edit
		if p != nil && len(p.edits) > 0 {
			e = &p.edits[len(p.edits)-1]
		}
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case word == "=":
			all = append(all, protection{says: rest})
		case word == "red" && p != nil:
			p.pkg, p.run, _ = strings.Cut(rest, " ")
		case word == "in" && p != nil:
			p.edits = append(p.edits, edit{file: rest})
		case line[0] == '-' && e != nil:
			e.old = strings.TrimPrefix(e.old+"\n"+line[1:], "\n")
		case line[0] == '+' && e != nil:
			e.new = strings.TrimPrefix(e.new+"\n"+line[1:], "\n")
		default:
			return nil, fmt.Errorf("%s:%d: %q", name, n+1, line)
		}
	}
	return all, nil
}
