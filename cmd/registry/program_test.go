package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
	"example.org/registry/httpapi/admin"
)

// patience bounds every wait; nothing is expected to take this long.
const patience = registrytest.Patience

// program is the registry with a data directory of its own: one server after the other, and the
// commands to them.
type program struct {
	*registrytest.Server // the newest, or nil before the first
	t                    *testing.T
	dir, data            string   // data is below dir
	env                  []string // of the servers, in addition to the test's own
	flags                []string // of the servers
}

func newProgram(t *testing.T, flags ...string) *program {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	return &program{t: t, dir: dir, data: data, flags: append([]string{"--data-dir=" + data}, flags...)}
}

// startProgram starts a program and waits until it is ready.
func startProgram(t *testing.T, flags ...string) *program {
	t.Helper()
	p := newProgram(t, flags...)
	p.start()
	return p
}

// start starts a server and waits until it is ready.
func (p *program) start(flags ...string) {
	p.t.Helper()
	p.startUntil("ready", flags...)
}

// startUntil starts a server and waits until it has logged a message.
func (p *program) startUntil(message string, flags ...string) {
	p.t.Helper()
	p.launch(flags...)
	require.NoError(p.t, p.WaitFor(p.t.Context(), message))
}

// launch starts a server.
func (p *program) launch(flags ...string) {
	p.t.Helper()
	p.begin(registrytest.Command(self(p.t), append(p.flags, flags...)...))
}

// begin starts a server by a command that runs it.
func (p *program) begin(cmd *exec.Cmd) {
	p.t.Helper()
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	s, err := registrytest.Start(cmd, filepath.Join(p.dir, "log"), nil)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { s.End(os.Kill) })
	p.Server = s
}

// self returns the path of the test binary, which is the program if it is run as "registry".
func self(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	return binary
}

// stop stops the server in order.
func (p *program) stop() {
	p.t.Helper()
	if status := p.End(syscall.SIGTERM); status != 0 {
		p.t.Errorf("exit status %d: %s", status, p.Tail())
	}
}

// run runs a command inside the test and returns what it prints. Its --admin-addr is the server's.
func (p *program) run(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatalf("%v: %v", args, err)
	}
	return out
}

// try is run for a command that may fail.
func (p *program) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	return p.tryWith(ctx, nil, args...)
}

func (p *program) tryWith(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	admin := ""
	if p.Server != nil {
		admin = p.AdminAddr()
	}
	return runWith(ctx, admin, stdin, args...)
}

// runWith runs a command whose --admin-addr is admin.
func runWith(ctx context.Context, admin string, stdin io.Reader, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	env := func(name string) string {
		if name == "REGISTRY_ADMIN_ADDR" {
			return admin
		}
		return ""
	}
	err := run(ctx, args, env, stdin, &out, &complaint)
	if err != nil {
		err = fmt.Errorf("%w; %s", err, complaint.String())
	}
	return out.String(), err
}

// publish publishes lines of events and waits until the server has applied them.
func (p *program) publish(ndjson string) {
	p.t.Helper()
	said, err := p.tryWith(p.t.Context(), strings.NewReader(ndjson), "publish", "--nats-url="+p.NATS, "-")
	_, last, _ := strings.Cut(said, "last sequence ")
	want, notNumber := strconv.ParseUint(strings.TrimSpace(last), 10, 64)
	if err != nil || notNumber != nil {
		p.t.Fatalf("publish says %q: %v", said, err)
	}
	p.applied(want)
}

// ndjson returns the lines of events.
func ndjson(t *testing.T, all ...events.Event) string {
	t.Helper()
	var out strings.Builder
	for _, e := range all {
		line, err := events.Encode(e)
		require.NoError(t, err)
		out.Write(append(line, '\n'))
	}
	return out.String()
}

// fill publishes n events and waits until the server has applied them.
func (p *program) fill(n int, seed uint64) {
	p.t.Helper()
	messages := make([]publish.Message, n)
	for i, e := range eventstest.Events(n, seed) {
		messages[i] = publish.Message{Event: e}
	}
	sum, err := p.publisher().PublishAll(p.t.Context(), messages)
	require.NoError(p.t, err)
	p.applied(sum.LastSequence)
}

// publisher returns a publisher into the server's broker.
func (p *program) publisher() *publish.Publisher {
	p.t.Helper()
	return publish.New(p.stream(), publish.Config{})
}

// stream connects to the server's broker until the test ends.
func (p *program) stream() jetstream.JetStream {
	p.t.Helper()
	return eventstest.Dial(p.t, p.NATS)
}

// applied waits until the server has dealt with a sequence.
func (p *program) applied(sequence uint64) {
	p.t.Helper()
	p.until(fmt.Sprintf("checkpoint %d", sequence), func() bool { return p.projection().Checkpoint >= sequence })
}

func (p *program) projection() admin.Projection {
	p.t.Helper()
	now, err := p.Projection(context.WithoutCancel(p.t.Context()))
	require.NoError(p.t, err)
	return now
}

// until waits for a condition.
func (p *program) until(what string, ok func() bool) {
	p.t.Helper()
	_, err := registrytest.Await(p.t.Context(), what, ok)
	require.NoError(p.t, err)
}

// ask sends one request on a connection of its own.
func ask(url string) (int, []byte, error) {
	a, err := registrytest.Ask(context.Background(), url, nil)
	return a.Status, a.Body, err
}
