package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A token is read only from a file that is as private as a password must be.
func TestChatToken(t *testing.T) {
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string // "" is a refusal
	}{
		{"example.Token-1\n", 0o600, "example.Token-1"},
		{"example", 0o400, "example"},
		{"example", 0o440, "example"}, // a mounted secret of a group
		{"example", 0o640, "example"},
		{"example", 0o644, ""},
		{"example", 0o604, ""},
		{"example", 0o620, ""},
		{"example", 0o660, ""},
		{"example", 0o777, ""},
		{"", 0o600, ""},
		{" \n", 0o600, ""},
		{"two words", 0o600, ""},
		{"two\nlines", 0o600, ""},
		{"injected\r\nX: y", 0o600, ""},
		{"żółw", 0o600, ""},
		{strings.Repeat("x", maxToken), 0o600, strings.Repeat("x", maxToken)},
		{strings.Repeat("x", maxToken+1), 0o600, ""},
		{strings.Repeat("x", 1<<20), 0o600, ""},
	} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := (&serveCmd{ChatTokenFile: file}).chatToken()
		if string(got) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%.20q with mode %04o: %d bytes, %v", c.text, c.mode, len(got), err)
		}
		if text := fmt.Sprint(got, err); strings.Contains(text, "example") || err != nil && !strings.Contains(text, "--chat-token-file") {
			t.Errorf("%.20q: %s", c.text, text)
		}
	}
	for _, file := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := (&serveCmd{ChatTokenFile: file}).chatToken(); err == nil {
			t.Errorf("%s is accepted", file)
		}
	}
	if got, err := (&serveCmd{}).chatToken(); got != "" || err != nil {
		t.Errorf("without a file: %v", err)
	}
}

func TestUsageErrorsOfOutsideServices(t *testing.T) {
	const api, cdn = "https://api.example.org", "https://cdn.example.org"
	for args, name := range map[string]string{
		"serve --guard-url nonsense":        "--guard-url",
		"serve --guard-url ftp://x":         "--guard-url",
		"serve --chat-url http://u:p@x":     "--chat-url",
		"serve --coin-url https://x/?key=1": "--coin-url",
		"serve --chat-api-url " + api:       "--chat-cdn-url",
		"serve --chat-cdn-url " + cdn:       "--chat-api-url",
		"serve --chat-token-file token":     "--chat-api-url",
		"serve --chat-api-url http://api.example.org --chat-cdn-url " + cdn + " --chat-token-file token": "https",
	} {
		_, err := start(t, nil, strings.Fields(args)...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v does not name %s as a usage error", args, err, name)
		}
		if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: the password is shown: %v", args, err)
		}
	}
}
