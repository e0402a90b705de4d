//go:build unix && !race && nightly

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/httpapi/admin"
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
		flags: append([]string{"--nats-url=" + strings.Join(brokers, ","), "--data-dir=" + data}, flags...)}
}

// start starts a process. A panic is a failure even if the server recovers from it.
func (r *replica) start() (err error) {
	r.Server, err = registrytest.Start(registrytest.Command(registry, r.flags...), r.data+".log", func(line string) {
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
	require.NoError(t, r.WaitReady(t.Context()))
	return r
}

// launch is serve that returns when the replica listens.
func launch(t testing.TB, dir string, brokers []string, flags ...string) *replica {
	t.Helper()
	r := newReplica(filepath.Join(dir, "replica"), brokers, newReport(t), append([]string{"--stream-replicas=3"}, flags...)...)
	require.NoError(t, r.start())
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.Log())
		}
	})
	require.NoError(t, r.WaitListening(t.Context()))
	return r
}

// projection is Projection for a test's goroutine.
func (r *replica) projection(t testing.TB) admin.Projection {
	t.Helper()
	p, err := r.Projection(t.Context())
	require.NoError(t, err)
	return p
}

// well reports whether the replica has applied the sequence and nothing is wrong.
func (r *replica) well(t testing.TB, sequence uint64) bool {
	p := r.projection(t)
	return p.Checkpoint >= sequence && p.LastError == nil
}

// command runs a command of the program and returns its output. It gets the replica's admin address
// from the environment and the broker's from brokers.
func (r *replica) command(ctx context.Context, brokers []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, registry, args...)
	cmd.Env = append(os.Environ(), "REGISTRY_ADMIN_ADDR="+r.AdminAddr(), "REGISTRY_NATS_URL="+strings.Join(brokers, ","))
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("registry %s: %w: %.1000s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// get is registrytest.Ask for a test's goroutine.
func get(t testing.TB, url string, header http.Header) registrytest.Answer {
	t.Helper()
	a, err := registrytest.Ask(t.Context(), url, header)
	require.NoError(t, err)
	return a
}
