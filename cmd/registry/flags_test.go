package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/httpapi/site"
)

// start runs the program inside the test.
func start(t *testing.T, env map[string]string, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a command line that is wrongly accepted must not serve forever
	defer cancel()
	var out, complaints bytes.Buffer
	getenv := func(name string) string {
		if name == "REGISTRY_DATA_DIR" {
			return filepath.Join(t.TempDir(), "data")
		}
		return env[name]
	}
	err = run(ctx, args, getenv, strings.NewReader(""), &out, &complaints)
	return out.String(), err
}

func TestUsageErrorsNameTheFlag(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		args string
		name string
	}{
		{nil, "serve --http-addr 8080", "--http-addr"},
		{nil, "serve --http-addr :65536", "--http-addr"},
		{nil, "serve --admin-addr :8081", "--admin-token-file"},
		{nil, "serve --admin-addr registry.example:8081", "--admin-token-file"},
		{nil, "serve --base-url ftp://x", "--base-url"},
		{nil, "serve --base-url https://x/?a=1", "--base-url"},
		{nil, "serve --appeals-url https://x/{id}", "--appeals-url"},
		{nil, "serve --appeals-url https://{reportId}.x/", "--appeals-url"},
		{nil, "serve --appeals-url mailto:a@b.example", "--appeals-url"},
		{nil, "serve --report-url https://x/{reportId}", "--report-url"},
		{nil, "serve --report-url nonsense", "--report-url"},
		{nil, "serve --proofs-url nonsense", "--proofs-url"},
		{nil, "serve --rate-limit=-1", "--rate-limit"},
		{nil, "serve --rate-limit=NaN", "--rate-limit"},
		{nil, "serve --max-followers=-1", "--max-followers"},
		{nil, "serve --trusted-proxies 10.0.0.0/33", "--trusted-proxies"},
		{nil, "serve --max-connections=-1", "--max-connections"},
		{nil, "serve --idle-timeout=0s", "--idle-timeout"},
		{nil, "serve --answer-memory=lots", "--answer-memory"},
		{nil, "serve --answer-memory=1MiB", "--answer-memory"},
		{nil, "serve --stream=REGISTRY_REJECTED", "--stream"},
		{nil, "serve --stream=OBJ_REGISTRY_SNAPSHOTS", "--stream"},
		{nil, "serve --max-staleness=5", "--max-staleness"},
		{nil, "serve --max-staleness=-5s", "--max-staleness"},
		{nil, "serve --stale-if-error=3600", "--stale-if-error"},
		{nil, "serve --stale-if-error=-1h", "--stale-if-error"},
		{nil, "serve --stale-if-error=1ms", "--stale-if-error"},
		{nil, "serve --min-entries=x", "--min-entries"},
		{nil, "serve --stream a.b", "--stream"},
		{nil, "serve --stream-replicas 6 --nats-url nats://127.0.0.1:1", "--stream-replicas"},
		{nil, "serve --stream-replicas 3", "--stream-replicas"},
		{nil, "serve --stream-history=-1", "--stream-history"},
		{nil, "serve --nats-url http://x", "--nats-url"},
		{nil, "serve --nats-url nats://x:99999", "--nats-url"},
		{nil, "serve --nats-url nats://", "--nats-url"},
		{nil, "serve --nats-url nats://127.0.0.1:1 --nats-inbox-prefix _INBOX.>", "--nats-inbox-prefix"},
		{nil, "serve --demo --nats-url nats://127.0.0.1:4222", "--demo"},
		{nil, "serve --embedded-nats-addr nowhere", "--embedded-nats-addr"},
		{nil, "serve --embedded-nats-config x --nats-url nats://127.0.0.1:1", "--embedded-nats-config"},
		{nil, "serve --log-format xml", "--log-format"},
		{nil, "serve --log-level loud", "--log-level"},
		{nil, "serve --no-such-flag", "--no-such-flag"},
		{nil, "publish", "FILE"},
		{nil, "publish --max-errors=-1 x", "--max-errors"},
		{nil, "publish - -", "FILE"},
		{nil, "ready --admin-addr 127.0.0.1:0", "--admin-addr"},
		{nil, "nonsense", "nonsense"},
		{map[string]string{"REGISTRY_HTTP_ADDR": "8080"}, "serve", "--http-addr"},
		{map[string]string{"REGISTRY_STREAM_HISTORY": "five"}, "serve", "--stream-history"},
		{map[string]string{"REGISTRY_DEMO": "true", "REGISTRY_NATS_URL": "nats://127.0.0.1:1"}, "serve", "--demo"},
	} {
		_, err := start(t, c.env, strings.Fields(c.args)...)
		if _, ok := errors.AsType[cli.UsageError](err); !ok || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%v %s: error %v does not name %s as a usage error", c.env, c.args, err, c.name)
		}
	}
}

// Passwords are part of broker addresses; messages go to logs.
func TestNoPasswordInMessages(t *testing.T) {
	for _, url := range []string{"nats://user:secret@127.0.0.1:1", "user:secret@127.0.0.1:1", "nats://user:secret@host:99999"} {
		_, err := start(t, nil, "publish", "--nats-url", url, "flags_test.go")
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// The command line wins over the environment, that over the default; an empty variable is none.
func TestWhereValuesComeFrom(t *testing.T) {
	for _, c := range []struct {
		env, arg string
		want     int
	}{{"", "", 5}, {"7", "", 7}, {"7", "--stream-history=9", 9}} {
		var flags commands
		parser, err := newParser(&flags, func(name string) string {
			if name == "REGISTRY_STREAM_HISTORY" {
				return c.env
			}
			return ""
		}, nil, nil)
		require.NoError(t, err)
		args := []string{"serve"}
		if c.arg != "" {
			args = append(args, c.arg)
		}
		if _, err := parser.Parse(args); err != nil || flags.Serve.StreamHistory != c.want {
			t.Errorf("%+v: %d, %v", c, flags.Serve.StreamHistory, err)
		}
	}
}

// Every flag can be set in the environment, so each must have a help text and a name that
// gives a plain variable.
func TestFlagsAreDocumented(t *testing.T) {
	var flags commands
	parser, err := newParser(&flags, func(string) string { return "" }, nil, nil)
	require.NoError(t, err)
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok && f.Help == "" {
			t.Errorf("--%s has no help text", f.Name)
		}
		return next(nil)
	})
	require.NoError(t, err)
	contract, err := os.ReadFile("CONTRACT.md")
	require.NoError(t, err)
	parsed, err := parser.Parse([]string{"serve"})
	require.NoError(t, err)
	for _, f := range parsed.Selected().Flags {
		row := regexp.MustCompile("\n\\|[^|\n]*`--" + f.Name + "`[^|\n]*\\|([^|\n]*)\\|").FindSubmatch(contract)
		if row == nil {
			continue // one that goes with another
		}
		if says := string(row[1]); f.IsBool() != regexp.MustCompile("true|false").MatchString(says) || !strings.Contains(says, strings.TrimSuffix(f.Default, "0s")) {
			t.Errorf("--%s: the contract says that the default is %q, and it is %q", f.Name, says, f.Default)
		}
	}
	if got := variable("nats-url"); got != "REGISTRY_NATS_URL" {
		t.Errorf("variable of --nats-url is %s", got)
	}
}

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
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		require.NoError(t, os.Chmod(file, c.mode))
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

// An advice or a page about the registry that cannot be shown is refused before anything is
// touched.
func TestMarkdownFiles(t *testing.T) {
	for text, want := range map[string]string{
		"## Oszustwo\nNie płać.\n": "", "\ufeffNie płać.": "", "": "empty", "\xff": "UTF-8", strings.Repeat("x", site.MaxText+1): "262144",
	} {
		file := filepath.Join(t.TempDir(), "advice.md")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got, err := markdownFile("--advice-file", file)
		if want == "" && (got != text || err != nil) || want != "" && (err == nil || !strings.Contains(err.Error(), "--advice-file: ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.20q: %q, %v", text, got, err)
		}
	}
	blank := filepath.Join(t.TempDir(), "blank.md")
	require.NoError(t, os.WriteFile(blank, []byte(" \n"), 0o600))
	for _, flag := range []string{"--advice-file", "--about-file"} {
		for file, want := range map[string]string{filepath.Join(t.TempDir(), "none"): ": no such file", blank: ": the file must not be blank"} {
			_, err := start(t, nil, "serve", flag, file)
			var usage cli.UsageError
			if err == nil || errors.As(err, &usage) || !strings.Contains(err.Error(), flag+": ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v", flag, file, err)
			}
		}
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
		if _, ok := errors.AsType[cli.UsageError](err); !ok || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v does not name %s as a usage error", args, err, name)
		}
		if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: the password is shown: %v", args, err)
		}
	}
}
