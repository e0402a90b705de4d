package main

import (
	"errors"
	"os"
	"strings"
)

// minToken is the least length of an admin token in bytes: shorter ones can be guessed.
const minToken = 16

// adminToken reads the token of the operators' listener, for the server and for commands alike; empty when no file is named.
func adminToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", unreadable("--admin-token-file", file, err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("--admin-token-file: the file must hold at least 16 printable ASCII characters without spaces")
	}
	return token, nil
}
