package eventstest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Poison is a message of the corpus events/testdata/poison.txt. Most break the contract.
type Poison struct {
	Name    string
	Subject string
	Problem string // a part of the reason for its rejection; empty if the message is valid
	Headers string // the block of headers as sent; empty for a message without headers
	Payload string
}

// Poisons reads the corpus at path. A line is a name and four quoted texts, separated by tabs.
func Poisons(path string) ([]Poison, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	var all []Poison
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 5 {
			return nil, fmt.Errorf("%s: %q has %d fields", path, fields[0], len(fields))
		}
		for i := 1; i < len(fields); i++ {
			fields[i], err = strconv.Unquote(fields[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", path, fields[0], err)
			}
		}
		all = append(all, Poison{Name: fields[0], Subject: fields[1], Problem: fields[2], Headers: fields[3], Payload: fields[4]})
	}
	return all, nil
}
