package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// data is the content of the data files.
type data struct {
	version    string            // of Unicode, of both files
	prototypes map[string][]rune // replacements of the key, in the file's order
	targets    []string          // the keys of prototypes, in the file's order
	ignorable  [][2]rune         // first and last of each range
}

// read reads both files. It returns an error if their versions differ.
func read(dir string) (*data, error) {
	d := &data{prototypes: map[string][]rune{}}
	err := eachLine(filepath.Join(dir, "confusables.txt"), func(line string) error {
		if v, ok := strings.CutPrefix(line, "# Version: "); ok {
			d.version = v
		}
		return d.confusable(fields(line))
	})
	if err != nil {
		return nil, err
	}
	found := false
	err = eachLine(filepath.Join(dir, "DefaultIgnorable.txt"), func(line string) error {
		found = found || line == "# DerivedCoreProperties-"+d.version+".txt"
		return d.ignore(fields(line))
	})
	if err == nil && (d.version == "" || !found) {
		err = fmt.Errorf("the files are not of one version: confusables.txt is of %q", d.version)
	}
	return d, err
}

func eachLine(file string, f func(line string) error) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	n, lines := 0, bufio.NewScanner(in)
	for lines.Scan() {
		n++
		if err := f(strings.TrimPrefix(lines.Text(), "\ufeff")); err != nil {
			return fmt.Errorf("%s, line %d: %w", file, n, err)
		}
	}
	return lines.Err()
}

// fields returns the fields of a line, which semicolons separate, without its comment. It returns
// nil for a comment line.
func fields(line string) []string {
	line, _, _ = strings.Cut(line, "#")
	if strings.TrimSpace(line) == "" {
		return nil
	}
	fs := strings.Split(line, ";")
	for i := range fs {
		fs[i] = strings.TrimSpace(fs[i])
	}
	return fs
}

// confusable adds a line "source ; target ; MA" of confusables.txt.
func (d *data) confusable(fs []string) error {
	if fs == nil {
		return nil
	}
	if len(fs) != 3 || fs[2] != "MA" {
		return fmt.Errorf("unknown form %q", fs)
	}
	source, err := codePoints(fs[0])
	if err != nil || len(source) != 1 {
		return fmt.Errorf("source %q is not one code point: %w", fs[0], err)
	}
	target, err := codePoints(fs[1])
	if err != nil {
		return err
	}
	if d.prototypes[string(target)] == nil {
		d.targets = append(d.targets, string(target))
	}
	d.prototypes[string(target)] = append(d.prototypes[string(target)], source[0])
	return nil
}

// ignore adds a line "first..last ; Default_Ignorable_Code_Point" of DerivedCoreProperties.txt.
func (d *data) ignore(fs []string) error {
	if fs == nil {
		return nil
	}
	if len(fs) != 2 || fs[1] != "Default_Ignorable_Code_Point" {
		return fmt.Errorf("unknown form %q", fs)
	}
	ends, err := codePoints(strings.Replace(fs[0], "..", " ", 1))
	if err != nil || len(ends) == 0 || len(ends) > 2 {
		return fmt.Errorf("range %q: %w", fs[0], err)
	}
	d.ignorable = append(d.ignorable, [2]rune{ends[0], ends[len(ends)-1]})
	return nil
}

// codePoints parses hexadecimal numbers.
func codePoints(s string) ([]rune, error) {
	var out []rune
	for _, field := range strings.Fields(s) {
		n, err := strconv.ParseUint(field, 16, 21)
		if err != nil {
			return nil, err
		}
		out = append(out, rune(n))
	}
	return out, nil
}
