package deploy

import (
	"bytes"
	"flag"
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
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// registry is the built program.
var registry string

// secrets is the directory of the secrets of the installation that all tests share.
var secrets string

// TestMain builds the program and makes the secrets of an installation. The race detector would see
// nothing of other processes, so nothing runs with it.
func TestMain(m *testing.M) {
	eventstest.Main(m, run)
}

func run(m *testing.M) (status int, err error) {
	if eventstest.RaceDetector {
		err = flag.Set("test.run", "^$") // so that "go test" says that there are no tests to run
		return m.Run(), err
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // most of the time the tests wait
		return 1, err
	}
	dir, err := os.MkdirTemp("", "registry-deploy-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if registry, err = registrytest.Build(dir); err != nil {
		return 1, err
	}
	secrets = filepath.Join(dir, "secrets")
	if err := makeSecrets(secrets); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// makeSecrets makes secrets as an operator does, and gives them to nats.conf, which reads the
// environment.
func makeSecrets(dir string) error {
	if out, err := exec.Command(registry, "keys", "--dir", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("keys: %w: %s", err, out)
	}
	env, err := os.ReadFile(filepath.Join(dir, "nats.env"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(env) + "NATS_NAME=nats-0\n") {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// program finds a program that a test needs, and skips the test if it is not installed. In .ci/run
// it must be.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed; .ci/run does it", name)
	}
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// serve starts "registry serve" on free ports and returns when it listens. It ends with the test.
func serve(t *testing.T, flags ...string) *registrytest.Server {
	t.Helper()
	return start(t, registrytest.Command(registry, append([]string{"--embedded-nats-addr=-", "--data-dir=" + t.TempDir()}, flags...)...))
}

// start is serve for a command that the caller has prepared.
func start(t *testing.T, cmd *exec.Cmd) *registrytest.Server {
	t.Helper()
	r, err := registrytest.Start(cmd, filepath.Join(t.TempDir(), "log"), nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		r.End(syscall.SIGINT)
		if t.Failed() {
			t.Log(r.Log())
		}
	})
	require.NoError(t, r.WaitListening(t.Context()))
	return r
}

// await asks until url answers 200 with text in its body, which it returns.
func await(t *testing.T, url, text string) string {
	t.Helper()
	var status int
	var body string
	until(t, func() string { return fmt.Sprintf("%s says %q; the last answer was %d %s", url, text, status, body) }, func() bool {
		status, _, body = get(t, url, nil)
		return status == http.StatusOK && strings.Contains(body, text)
	})
	return body
}

// until waits for a condition. what says what never was.
func until(t *testing.T, what func() string, condition func() bool) {
	t.Helper()
	if _, err := registrytest.Await(t.Context(), "", condition); err != nil {
		t.Fatal(err, what())
	}
}

// get returns status 0 if there is no answer.
func get(t *testing.T, url string, header http.Header) (int, http.Header, string) {
	t.Helper()
	a, err := registrytest.Ask(t.Context(), url, header)
	if err != nil {
		return 0, nil, err.Error()
	}
	return a.Status, a.Header, string(a.Body)
}

// output runs a program that must end with status 0.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// freeAddress returns an address for a program that cannot report which port it got.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := eventstest.Address()
	require.NoError(t, err)
	return address
}

// eventFile writes a file of n entries' events.
func eventFile(t *testing.T, n int) string {
	t.Helper()
	var text bytes.Buffer
	for _, e := range eventstest.Events(n, 1) {
		line, err := events.Encode(e)
		require.NoError(t, err)
		text.Write(append(line, '\n'))
	}
	file := filepath.Join(t.TempDir(), "events.ndjson")
	require.NoError(t, os.WriteFile(file, text.Bytes(), 0o600))
	return file
}
