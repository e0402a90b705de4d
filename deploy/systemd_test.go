package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unit is the unit with the program where this test has it.
func unit(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("systemd/registry.service")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "registry.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/registry", registry)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// systemd understands every line (it only warns of those that it does not), and finds little left to take away.
func TestUnit(t *testing.T) {
	analyze := program(t, "systemd-analyze")
	file := unit(t)
	if said := output(t, analyze, "verify", "--man=no", file); said != "" {
		t.Error(said)
	}
	said := output(t, analyze, "security", "--offline=true", "--threshold=20", file)
	if !regexp.MustCompile(`Overall exposure level .*: [01]\.\d`).MatchString(said) {
		t.Error(said)
	}
}
