package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
	"example.org/registry/events/stream"
)

// TestScripts runs what a user sees of the program: one file for each topic in testdata.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Values[serversKey{}] = servers{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":     scriptServe,
			"terminate": scriptTerminate,
			"get":       scriptGet,
			"occupy":    scriptOccupy,
			"make":      scriptMake,
			"await":     scriptAwait,
			"broker":    scriptBroker,
			"recreate":  scriptRecreate,
			"epoch":     scriptEpoch,
			"raw":       scriptRaw,
			"name":      scriptName,
			"purge":     scriptPurge,
			"cut":       scriptCut,
			"digest":    scriptDigest,
		},
	})
}

type serversKey struct{}

// servers are the running servers of a script.
type servers map[string]*registrytest.Server

// scriptServe is: serve NAME MESSAGE [flags…]. It starts a server, waits for the log line
// "listening" or "ready", and sets NAME_HTTP, NAME_ADMIN and NAME_NATS. The log is NAME.log.
func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: serve NAME MESSAGE [flags...]")
	}
	name, message := args[0], args[1]
	binary, err := exec.LookPath("registry")
	if err != nil {
		binary, err = os.Executable()
	}
	ts.Check(err)
	cmd := registrytest.Command(binary, args[2:]...)
	cmd.Dir, cmd.Env = ts.Getenv("WORK"), scriptEnv(ts)
	c, err := registrytest.Start(cmd, ts.MkAbs(name+".log"), nil)
	ts.Check(err)
	ts.Value(serversKey{}).(servers)[name] = c
	ts.Defer(func() { c.End(os.Kill) })
	ts.Check(c.WaitFor(context.Background(), message))
	ts.Setenv(name+"_HTTP", strings.TrimPrefix(c.HTTP, "http://"))
	ts.Setenv(name+"_ADMIN", c.AdminAddr())
	ts.Setenv(name+"_NATS", c.NATS)
}

func scriptEnv(ts *testscript.TestScript) []string {
	env := []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TMPDIR=" + ts.Getenv("TMPDIR")}
	if v := ts.Getenv("GORACE"); v != "" {
		env = append(env, "GORACE="+v)
	}
	return env
}

// scriptTerminate is: terminate NAME STATUS. SIGTERM, and the exit status must be STATUS.
func scriptTerminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: terminate NAME STATUS")
	}
	c := ts.Value(serversKey{}).(servers)[args[0]]
	if status := c.End(syscall.SIGTERM); strconv.Itoa(status) != args[1] {
		ts.Fatalf("%s ended with %s: %s", args[0], c.State(), c.Log())
	}
}

// scriptGet is: get STATUS ADDRESS PATH FILE. It asks http://ADDRESS PATH and keeps the body in
// FILE.
func scriptGet(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: get STATUS ADDRESS PATH FILE")
	}
	status, body, err := ask("http://" + args[1] + args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), body, 0o644))
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("%s: status %d: %s", args[2], status, body)
	}
}

// scriptAwait is: await ADDRESS PATH TEXT. It asks until the answer is 200 and contains TEXT.
func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: await ADDRESS PATH TEXT")
	}
	var status int
	var body []byte
	for end := time.Now().Add(patience); time.Now().Before(end); {
		var err error
		status, body, err = ask("http://" + args[0] + args[1])
		ts.Check(err)
		if status == http.StatusOK && strings.Contains(string(body), args[2]) {
			return
		}
	}
	ts.Fatalf("%s never showed %q; last: %d %s", args[1], args[2], status, body)
}

// scriptOccupy is: occupy NAME. It listens on a port until the script ends and sets NAME to its
// address.
func scriptOccupy(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

// scriptMake is: make FILE COUNT SEED. It writes COUNT events as NDJSON.
func scriptMake(ts *testscript.TestScript, neg bool, args []string) {
	count, err := strconv.Atoi(args[1])
	ts.Check(err)
	seed, err := strconv.ParseUint(args[2], 10, 64)
	ts.Check(err)
	var out strings.Builder
	for _, e := range eventstest.Events(count, seed) {
		text, err := events.Encode(e)
		ts.Check(err)
		out.Write(append(text, '\n'))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(out.String()), 0o644))
}

// scriptBroker is: broker NAME KIND. It starts a broker of its own until the script ends and sets
// NAME to its address. KIND: none (no stream), plain (as the contract has it) or maxage.
func scriptBroker(ts *testscript.TestScript, neg bool, args []string) {
	b, err := broker.Start(broker.Config{StoreDir: ts.MkAbs(args[0] + ".broker"), Addr: "127.0.0.1:0", UnsafeNoSync: true})
	ts.Check(err)
	ts.Defer(b.Shutdown)
	ts.Setenv(args[0], b.ClientURL())
	if args[1] == "none" {
		return
	}
	nc, err := b.Connect()
	ts.Check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ts.Check(err)
	cfg := stream.Config(events.DefaultStream, 1, events.DefaultHistory, stream.Identity{})
	if args[1] == "maxage" {
		cfg.MaxAge = 24 * time.Hour
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = js.CreateStream(ctx, cfg)
	ts.Check(err)
}

// onStream calls f with the broker at url.
func onStream(ts *testscript.TestScript, url string, f func(context.Context, jetstream.JetStream) error) {
	nc, err := nats.Connect(url, nats.Timeout(patience))
	ts.Check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(f(ctx, js))
}

// scriptRecreate is: recreate URL COUNT SEED. It deletes the event stream of a broker and makes
// another one with so many events of its own; none at all where COUNT is negative.
func scriptRecreate(ts *testscript.TestScript, neg bool, args []string) {
	count, err := strconv.Atoi(args[1])
	ts.Check(err)
	seed, err := strconv.ParseUint(args[2], 10, 64)
	ts.Check(err)
	onStream(ts, args[0], func(ctx context.Context, js jetstream.JetStream) error {
		err := js.DeleteStream(ctx, events.DefaultStream)
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) || count < 0 {
			return err
		}
		return remake(ctx, js, count, seed)
	})
}

// scriptEpoch is: epoch NAME URL. It sets NAME to the epoch of the event stream of a broker.
func scriptEpoch(ts *testscript.TestScript, neg bool, args []string) {
	onStream(ts, args[1], func(ctx context.Context, js jetstream.JetStream) error {
		info, err := stream.Stream{JS: js, Name: events.DefaultStream}.Info(ctx)
		if err == nil {
			ts.Setenv(args[0], stream.IdentityOf(info).Epoch)
		}
		return err
	})
}

// remake makes the event stream again.
func remake(ctx context.Context, js jetstream.JetStream, n int, seed uint64) error {
	cfg := stream.Config(events.DefaultStream, 1, events.DefaultHistory, stream.Identity{})
	if _, err := eventstest.Create(ctx, js, cfg); err != nil {
		return err
	}
	messages := make([]publish.Message, n)
	for i, e := range eventstest.Events(n, seed) {
		e.ID = fmt.Sprint("again-", seed, "-", i)
		messages[i] = publish.Message{Event: e}
	}
	_, err := publish.New(js, publish.Config{}).PublishAll(ctx, messages)
	return err
}

// scriptRaw is: raw URL SUBJECT PAYLOAD. It publishes what no publisher of ours would; LONG is 100
// KB of nothing.
func scriptRaw(ts *testscript.TestScript, neg bool, args []string) {
	payload := args[2]
	if payload == "LONG" {
		payload = strings.Repeat("x", 100_000)
	}
	onStream(ts, args[0], func(ctx context.Context, js jetstream.JetStream) error {
		_, err := js.Publish(ctx, args[1], []byte(payload))
		return err
	})
}

// scriptPurge is: purge URL SUBJECT KEEP. It erases what the event stream has of a subject, but for
// the last KEEP messages, as the nats command does.
func scriptPurge(ts *testscript.TestScript, neg bool, args []string) {
	keep, err := strconv.ParseUint(args[2], 10, 64)
	ts.Check(err)
	onStream(ts, args[0], func(ctx context.Context, js jetstream.JetStream) error {
		s, err := js.Stream(ctx, events.DefaultStream)
		if err != nil {
			return err
		}
		return s.Purge(ctx, jetstream.WithPurgeSubject(args[1]), jetstream.WithPurgeKeep(keep))
	})
}

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
