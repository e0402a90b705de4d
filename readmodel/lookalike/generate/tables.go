package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// tables returns the generated file: the version, a line for each prototype with its replacement,
// and a line for each range of ignorable code points, all in hexadecimal.
func tables(dir string) ([]byte, error) {
	d, err := read(dir)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made by go generate from testdata; do not edit. The data is of Unicode, Inc.: LICENSE.unicode.\n"+
		"version %s\n", d.version)
	for _, target := range d.targets {
		sources := slices.Sorted(slices.Values(d.prototypes[target]))
		fmt.Fprintf(&b, "prototype %s = %s\n", literals([]rune(target)), literals(sources))
	}
	for _, ends := range d.ignorable {
		fmt.Fprintf(&b, "ignorable %s\n", literals(ends[:]))
	}
	return b.Bytes(), nil
}

func literals(rs []rune) string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = fmt.Sprintf("%X", r)
	}
	return strings.Join(out, " ")
}
