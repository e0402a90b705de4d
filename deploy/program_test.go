package deploy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// patience bounds every wait; nothing is expected to take this long.
const patience = 60 * time.Second

// replica is a running "registry serve".
type replica struct {
	HTTP, Admin string // addresses
	cmd         *exec.Cmd
	mu          sync.Mutex
	log         bytes.Buffer
	ended       chan struct{}
}

// serve starts one with free ports and ends it with the test. It returns when it listens.
func serve(t *testing.T, flags ...string) *replica {
	t.Helper()
	args := append([]string{"serve", "--http-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--embedded-nats-addr=-",
		"--log-format=json", "--data-dir=" + t.TempDir()}, flags...)
	return start(t, exec.Command(registry, args...))
}

// start runs a "registry serve" that logs as JSON.
func start(t *testing.T, cmd *exec.Cmd) *replica {
	t.Helper()
	r := &replica{cmd: cmd, ended: make(chan struct{})}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan struct{})
	go r.follow(stderr, listening)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-r.ended
		if t.Failed() {
			t.Log(r.said())
		}
	})
	select {
	case <-listening:
	case <-r.ended:
		t.Fatal("registry serve ended: " + r.said())
	case <-time.After(patience):
		t.Fatal("registry serve does not listen")
	}
	return r
}

func (r *replica) follow(stderr io.Reader, listening chan struct{}) {
	defer close(r.ended)
	in := bufio.NewScanner(stderr)
	for in.Scan() {
		var line struct{ Msg, HTTP, Admin string }
		if json.Unmarshal(in.Bytes(), &line) == nil && line.Msg == "listening" {
			r.HTTP, r.Admin = "http://"+line.HTTP, "http://"+line.Admin
			close(listening)
		}
		r.mu.Lock()
		r.log.Write(append(in.Bytes(), '\n'))
		r.mu.Unlock()
	}
	_ = r.cmd.Wait() // the tests look at what it did
}

func (r *replica) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// await asks until url answers 200 with text in its body.
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

// until looks, twenty times a second, until condition holds. what says what was waited for in vain.
func until(t *testing.T, what func() string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: ", what())
		}
	}
}

// get returns status 0 when there is no answer.
func get(t *testing.T, url string, header http.Header) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil, err.Error()
	}
	return answer.StatusCode, answer.Header, string(body)
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

// eventFile is a file of n entries' events.
func eventFile(t *testing.T, n int) string {
	t.Helper()
	var text bytes.Buffer
	for _, e := range eventstest.Events(n, 1) {
		line, err := events.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	file := t.TempDir() + "/events.ndjson"
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
