package main

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// start runs the program inside the test.
func start(t *testing.T, env map[string]string, args ...string) (stdout string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a command line that is wrongly accepted must not serve for ever
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
		{nil, "serve --proofs-url nonsense", "--proofs-url"},
		{nil, "serve --rate-limit=-1", "--rate-limit"},
		{nil, "serve --rate-limit=NaN", "--rate-limit"},
		{nil, "serve --trusted-proxies 10.0.0.0/33", "--trusted-proxies"},
		{nil, "serve --max-connections=-1", "--max-connections"},
		{nil, "serve --max-staleness=5", "--max-staleness"},
		{nil, "serve --max-staleness=-5s", "--max-staleness"},
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
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.name) {
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
		var flags cli
		parser, err := newParser(&flags, func(name string) string {
			if name == "REGISTRY_STREAM_HISTORY" {
				return c.env
			}
			return ""
		}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
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
	var flags cli
	parser, err := newParser(&flags, func(string) string { return "" }, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok && f.Help == "" {
			t.Errorf("--%s has no help text", f.Name)
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := variable("nats-url"); got != "REGISTRY_NATS_URL" {
		t.Errorf("variable of --nats-url is %s", got)
	}
}

func TestTrustedProxies(t *testing.T) {
	var got []string
	for _, text := range []string{"10.1.2.3/8", "::1", " 10.0.0.1", "::ffff:127.0.0.1", "::ffff:172.16.0.0/108"} {
		var n network
		if err := n.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		got = append(got, prefixes([]network{n})[0].String())
	}
	if want := []string{"10.0.0.0/8", "::1/128", "10.0.0.1/32", "127.0.0.1/32", "172.16.0.0/12"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, text := range []string{"", "10.0.0.0/33", "::ffff:0.0.0.0/80", "x"} {
		if err := new(network).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
