package main

import (
	"context"
	"fmt"
	"io"
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
func start(t *testing.T, env map[string]string, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a command line that is wrongly accepted must not serve forever
	defer cancel()
	getenv := func(name string) string {
		if name == "REGISTRY_DATA_DIR" {
			return filepath.Join(t.TempDir(), "data")
		}
		return env[name]
	}
	return run(ctx, args, getenv, strings.NewReader(""), io.Discard, io.Discard)
}

// TestUsageErrorsNameTheFlag: a mistake on the command line or in the environment is an error that names
// the flag, before anything is started.
func TestUsageErrorsNameTheFlag(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		args string
		name string
	}{
		{nil, "serve --http-addr 8080", "--http-addr"},
		{nil, "serve --http-addr :65536", "--http-addr"},
		{nil, "serve --admin-addr :8081", "--admin-token-file"},
		{nil, "serve --base-url ftp://x", "--base-url"},
		{nil, "serve --base-url https://x/?a=1", "--base-url"},
		{nil, "serve --appeals-url https://x/{id}", "--appeals-url"},
		{nil, "serve --appeals-url https://{reportId}.x/", "--appeals-url"},
		{nil, "serve --appeals-url mailto:a@b.example", "--appeals-url"},
		{nil, "serve --report-url https://x/{reportId}", "--report-url"},
		{nil, "serve --proofs-url nonsense", "--proofs-url"},
		{nil, "serve --rate-limit=NaN", "--rate-limit"},
		{nil, "serve --max-followers=-1", "--max-followers"},
		{nil, "serve --trusted-proxies 10.0.0.0/33", "--trusted-proxies"},
		{nil, "serve --trusted-proxies 10.0.0.1.2", "--trusted-proxies"},
		{nil, "serve --max-connections=-1", "--max-connections"},
		{nil, "serve --idle-timeout=0s", "--idle-timeout"},
		{nil, "serve --answer-memory=lots", "--answer-memory"},
		{nil, "serve --answer-memory=1MiB", "--answer-memory"},
		{nil, "serve --max-staleness=-5s", "--max-staleness"},
		{nil, "serve --stale-if-error=1ms", "--stale-if-error"},
		{nil, "serve --min-entries=x", "--min-entries"},
		{nil, "serve --stream a.b", "--stream"},
		{nil, "serve --stream-replicas 6 --nats-url nats://127.0.0.1:1", "--stream-replicas"},
		{nil, "serve --stream-replicas 3", "--stream-replicas"},
		{nil, "serve --stream-history=-1", "--stream-history"},
		{nil, "serve --nats-url http://x", "--nats-url"},
		{nil, "serve --nats-url nats://", "--nats-url"},
		{nil, "serve --nats-url nats://127.0.0.1:1 --nats-inbox-prefix _INBOX.>", "--nats-inbox-prefix"},
		{nil, "serve --demo --nats-url nats://127.0.0.1:4222", "--demo"},
		{nil, "serve --embedded-nats-addr nowhere", "--embedded-nats-addr"},
		{nil, "serve --embedded-nats-config x --nats-url nats://127.0.0.1:1", "--embedded-nats-config"},
		{nil, "serve --guard-url nonsense", "--guard-url"},
		{nil, "serve --chat-url http://u:p@x", "--chat-url"},
		{nil, "serve --coin-url https://x/?key=1", "--coin-url"},
		{nil, "serve --chat-api-url https://api.example.org", "--chat-cdn-url"},
		{nil, "serve --chat-token-file token", "--chat-api-url"},
		{nil, "serve --log-format xml", "--log-format"},
		{nil, "serve --log-level loud", "--log-level"},
		{nil, "serve --no-such-flag", "--no-such-flag"},
		{nil, "publish", "FILE"},
		{nil, "publish --max-errors=-1 x", "--max-errors"},
		{nil, "ready --admin-addr 127.0.0.1:0", "--admin-addr"},
		{nil, "nonsense", "nonsense"},
		{map[string]string{"REGISTRY_HTTP_ADDR": "8080"}, "serve", "--http-addr"},
		{map[string]string{"REGISTRY_STREAM_HISTORY": "five"}, "serve", "--stream-history"},
		{map[string]string{"REGISTRY_DEMO": "true", "REGISTRY_NATS_URL": "nats://127.0.0.1:1"}, "serve", "--demo"},
	} {
		t.Run(fmt.Sprint(c.args, c.env), func(t *testing.T) {
			err := start(t, c.env, strings.Fields(c.args)...)
			require.ErrorAs(t, err, &cli.UsageError{})
			require.ErrorContains(t, err, c.name)
			require.NotContains(t, err.Error(), "u:p@", "user and password")
		})
	}
}

// TestNoPasswordInMessages: passwords are part of broker addresses, and messages go to logs.
func TestNoPasswordInMessages(t *testing.T) {
	for _, url := range []string{"nats://user:secret@127.0.0.1:1", "user:secret@127.0.0.1:1", "nats://user:secret@host:99999"} {
		err := start(t, nil, "publish", "--nats-url", url, "flags_test.go")
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "secret", url)
	}
}

// TestWhereValuesComeFrom: the command line wins over the environment, which wins over the default; an
// empty variable counts as unset.
func TestWhereValuesComeFrom(t *testing.T) {
	for _, c := range []struct {
		env, arg string
		want     uint
	}{{"", "", 5}, {"7", "", 7}, {"7", "--stream-history=9", 9}} {
		var flags commands
		parser, err := newParser(&flags, func(name string) string {
			if name == "REGISTRY_STREAM_HISTORY" {
				return c.env
			}
			return ""
		}, nil, nil, nil)
		require.NoError(t, err)
		args := []string{"serve"}
		if c.arg != "" {
			args = append(args, c.arg)
		}
		_, err = parser.Parse(args)
		require.NoError(t, err)
		require.Equal(t, c.want, flags.Serve.StreamHistory, "%+v", c)
	}
}

// TestFlagsAreDocumented: each flag has a help text, and the contract has its default.
func TestFlagsAreDocumented(t *testing.T) {
	var flags commands
	parser, err := newParser(&flags, func(string) string { return "" }, nil, nil, nil)
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
	require.Equal(t, "REGISTRY_NATS_URL", variableName("nats-url"))
}

// TestMarkdownFiles: an advice or a page about the registry that cannot be shown is refused.
func TestMarkdownFiles(t *testing.T) {
	for text, problem := range map[string]string{
		"## Oszustwo\nNie płać.\n": "", "\ufeffNie płać.": "", "": "blank", " \n": "blank", "\xff": "UTF-8", strings.Repeat("x", site.MaxText+1): "262144",
	} {
		file := filepath.Join(t.TempDir(), "advice.md")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got, err := readMarkdown("--advice-file", file)
		if problem == "" {
			require.NoError(t, err, "%.20q", text)
			require.Equal(t, text, got)
			continue
		}
		require.ErrorContains(t, err, "--advice-file: ", "%.20q", text)
		require.ErrorContains(t, err, problem, "%.20q", text)
	}
}

// TestTrustedProxyIsAnAddressOrARange: an operator with a single proxy names its address.
func TestTrustedProxyIsAnAddressOrARange(t *testing.T) {
	for text, want := range map[string]string{"10.0.0.1": "10.0.0.1/32", "2001:db8::1": "2001:db8::1/128", "10.0.0.0/8": "10.0.0.0/8"} {
		var n network
		require.NoError(t, n.UnmarshalText([]byte(text)), text)
		require.Equal(t, want, prefixesOf([]network{n})[0].String())
	}
}
