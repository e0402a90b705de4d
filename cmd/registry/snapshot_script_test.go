package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"example.org/registry/events"
)

// scriptName is: name VARIABLE. It sets VARIABLE to the first name in the table on standard output.
func scriptName(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.Split(ts.ReadFile("stdout"), "\n")
	if neg || len(args) != 1 || len(lines) < 2 {
		ts.Fatalf("usage: name VARIABLE, after a table")
	}
	ts.Setenv(args[0], strings.Fields(lines[1])[0])
}

// scriptCut is: cut FILE PART. It writes the first nine tenths of FILE to PART.
func scriptCut(ts *testscript.TestScript, neg bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b[:len(b)*9/10], 0o600))
}

// scriptDigest is: digest ADDRESS VARIABLE. It sets VARIABLE to the digest that a server shows.
func scriptDigest(ts *testscript.TestScript, neg bool, args []string) {
	status, body, err := ask("http://" + args[0] + "/projection")
	ts.Check(err)
	var p struct{ Digest string }
	ts.Check(json.Unmarshal(body, &p))
	if status != http.StatusOK || p.Digest == "" {
		ts.Fatalf("%d %s", status, body)
	}
	ts.Setenv(args[1], p.Digest)
}

// scriptSame is: same FILE FILE. The files hold the same data in the same order, under different ids.
func scriptSame(ts *testscript.TestScript, neg bool, args []string) {
	a, b := decodeEvents(ts, args[0]), decodeEvents(ts, args[1])
	if len(a) == 0 || len(a) != len(b) {
		ts.Fatalf("%d and %d events", len(a), len(b))
	}
	for i := range a {
		if a[i].Data != b[i].Data || a[i].ID == b[i].ID {
			ts.Fatalf("event %d: %v and %v", i, a[i], b[i])
		}
	}
}

func decodeEvents(ts *testscript.TestScript, file string) (all []events.Event) {
	for line := range strings.Lines(ts.ReadFile(file)) {
		e, err := events.Decode([]byte(strings.TrimSpace(line)))
		ts.Check(err)
		all = append(all, e)
	}
	return all
}
