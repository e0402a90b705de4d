//go:build unix && !race

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.org/registry/cmd/registry/registrytest"
)

// replica is a "registry serve" and what stays of it from one process to the next. One goroutine at
// a time starts and ends it; others use it between a start and the next.
type replica struct {
	*registrytest.Server // nil before the first start
	name                 string
	data                 string // its data directory; the log is beside it
	flags                []string
	report               *report
}

func newReplica(data string, brokers []string, r *report, flags ...string) *replica {
	return &replica{name: filepath.Base(data), data: data, report: r,
		flags: append([]string{"serve", "--http-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--log-format=json",
			"--nats-url=" + strings.Join(brokers, ","), "--data-dir=" + data}, flags...)}
}

// start starts a process. A panic is a failure even if the server recovers from it.
func (r *replica) start() (err error) {
	r.Server, err = registrytest.Start(exec.Command(registry, r.flags...), r.data+".log", func(line string) {
		if strings.Contains(line, "panic") || strings.HasPrefix(line, "fatal error") {
			r.report.fail("the %s replica says: %.600s", r.name, line)
		}
	})
	return err
}

// stop ends it in order and returns its exit status.
func (r *replica) stop() int { return r.End(syscall.SIGTERM) }

// serve starts a replica of a cluster on free ports, and returns when it is ready. It ends with the
// test.
func serve(t testing.TB, dir string, brokers []string, flags ...string) *replica {
	t.Helper()
	r := launch(t, dir, brokers, flags...)
	if err := r.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// launch is serve that returns when the replica listens.
func launch(t testing.TB, dir string, brokers []string, flags ...string) *replica {
	t.Helper()
	r := newReplica(filepath.Join(dir, "replica"), brokers, newReport(t), append([]string{"--stream-replicas=3"}, flags...)...)
	if err := r.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.Log())
		}
	})
	if err := r.Listening(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// projection is what the tests use of the document at /projection.
type projection struct {
	Checkpoint, LastSequence, Lag   uint64
	IndexSequence, SnapshotSequence uint64
	Digest, StreamEpoch             string
	LastError                       *string
}

func (r *replica) state(ctx context.Context) (p projection, err error) {
	a, err := ask(ctx, r.Admin+"/projection", nil)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(a.body, &p)
}

// projection is state for a test's goroutine.
func (r *replica) projection(t testing.TB) projection {
	t.Helper()
	p, err := r.state(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// well reports whether the replica has applied the sequence and nothing is wrong.
func (r *replica) well(t testing.TB, sequence uint64) bool {
	p := r.projection(t)
	return p.Checkpoint >= sequence && p.LastError == nil
}

// settled waits until everything up to a sequence is applied, saved and indexed, and nothing is
// wrong.
func (r *replica) settled(ctx context.Context, sequence uint64) (p projection, err error) {
	if err := r.Ready(ctx); err != nil {
		return p, err
	}
	_, waiting := await(ctx, "the "+r.name+" replica has everything and nothing is wrong", func() bool {
		p, err = r.state(ctx)
		return err == nil && p.Checkpoint >= sequence && p.Lag == 0 && p.LastError == nil &&
			p.SnapshotSequence == p.Checkpoint && p.IndexSequence == p.Checkpoint
	})
	if waiting != nil {
		text, _ := json.Marshal(p) // it only explains
		return p, fmt.Errorf("%w: waited for %d, %s, %v; its log ends:\n%s", waiting, sequence, text, err, r.Tail())
	}
	return p, nil
}

// command runs a command of the program and returns its output. It gets the replica's admin address
// from the environment and the broker's from brokers.
func (r *replica) command(ctx context.Context, brokers []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, registry, args...)
	cmd.Env = append(os.Environ(), "REGISTRY_ADMIN_ADDR="+strings.TrimPrefix(r.Admin, "http://"), "REGISTRY_NATS_URL="+strings.Join(brokers, ","))
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("registry %s: %w: %.1000s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// answer is an HTTP answer with its body as it was sent.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// askWithin bounds a request. It is longer than a replica is ever stopped for.
const askWithin = 30 * time.Second

// newClient returns a client with connections of its own, which follows no redirects and unpacks
// nothing.
func newClient(keepAlive bool) *http.Client {
	return &http.Client{Timeout: askWithin, Transport: &http.Transport{DisableKeepAlives: !keepAlive, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ask sends one request, on a connection that ends with the answer: replicas come and go.
func ask(ctx context.Context, url string, header http.Header) (answer, error) {
	return askBy(ctx, newClient(false), url, header)
}

func askBy(ctx context.Context, client *http.Client, url string, header http.Header) (a answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return a, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.status, a.header = response.StatusCode, response.Header
	a.body, err = io.ReadAll(response.Body)
	return a, err
}

// get is ask for a test's goroutine.
func get(t testing.TB, url string, header http.Header) answer {
	t.Helper()
	a, err := ask(t.Context(), url, header)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
