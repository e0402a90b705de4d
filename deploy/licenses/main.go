// Command licenses writes the licenses of everything that is in a binary of this repository: of Go, of
// each module that the linker used, and of the data that is embedded, whose texts stand beside it in
// files named LICENSE.* and NOTICE.*. Run it in the repository's root, with the modules downloaded:
//
//	go run ./deploy/licenses registry > LICENSES
//
// The same sources and Go give the same text. A module without a license is an error.
package main

import (
	"bufio"
	"bytes"
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: licenses BINARY > LICENSES")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

func run(binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return err
	}
	if err := write(out, info.GoVersion, root); err != nil {
		return err
	}
	list := []string{"list", "-mod=readonly", "-m", "-f", "{{.Path}} {{.Version}}\t{{.Dir}}"}
	for _, module := range info.Deps {
		list = append(list, module.Path)
	}
	modules, err := output("go", list...)
	if err != nil {
		return err
	}
	for module := range strings.SplitSeq(modules, "\n") {
		name, dir, _ := strings.Cut(module, "\t")
		if err := write(out, name, dir); err != nil {
			return err
		}
	}
	if err := embedded(out); err != nil {
		return err
	}
	return out.Flush()
}

func output(name string, args ...string) (string, error) {
	text, err := exec.Command(name, args...).Output()
	return strings.TrimSpace(string(text)), err
}

// license matches the names of files with licenses and notices.
var license = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// write writes the texts of a module that are in the root of its files.
func write(out *bufio.Writer, module, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", module, err)
	}
	files = slices.DeleteFunc(files, func(f fs.DirEntry) bool { return f.IsDir() || !license.MatchString(f.Name()) })
	if len(files) == 0 {
		return fmt.Errorf("%s has no license", module)
	}
	for _, file := range files {
		if err := add(out, module+": "+file.Name(), filepath.Join(dir, file.Name())); err != nil {
			return err
		}
	}
	return nil
}

// embedded writes the texts that stand beside data.
func embedded(out *bufio.Writer) error {
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || path != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !d.IsDir() && (strings.HasPrefix(d.Name(), "LICENSE.") || strings.HasPrefix(d.Name(), "NOTICE.")) {
			return add(out, filepath.ToSlash(path), path)
		}
		return nil
	})
}

func add(out *bufio.Writer, heading, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "=== %s\n\n%s\n\n", heading, bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
	return err
}
