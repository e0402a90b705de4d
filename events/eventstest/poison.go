package eventstest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Poison is a message of the corpus events/testdata/poison.txt: one that breaks the contract, or, if
// Problem is empty, one that only looks so.
type Poison struct {
	Name, Subject string
	Problem       string // what the reason for its rejection contains
	Headers       string // the block of headers as sent, where it is not that of an event
	Payload       string
}

// String is the message's line in the corpus.
func (p Poison) String() string {
	line := p.Name
	for _, field := range []string{p.Subject, p.Problem, p.Headers, p.Payload} {
		if quoted := "`" + field + "`"; strconv.CanBackquote(field) && !strings.Contains(field, "\t") {
			line += "\t" + quoted
		} else {
			line += "\t" + strconv.Quote(field)
		}
	}
	return line + "\n"
}

// Poisons reads the corpus at path.
func Poisons(path string) ([]Poison, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Poison
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		p := Poison{Name: name}
		fields := strings.Split(rest, "\t")
		for i, field := range []*string{&p.Subject, &p.Problem, &p.Headers, &p.Payload} {
			if len(fields) != 4 {
				return nil, fmt.Errorf("%s: %q has %d fields", path, name, len(fields))
			}
			if *field, err = strconv.Unquote(fields[i]); err != nil {
				return nil, fmt.Errorf("%s: %q: %w", path, name, err)
			}
		}
		all = append(all, p)
	}
	return all, nil
}
