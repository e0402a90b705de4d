//go:build !race

package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// replica is a running "registry serve".
type replica struct {
	HTTP, Admin string // addresses
	cmd         *exec.Cmd
	mu          sync.Mutex
	log         bytes.Buffer
	ended       chan struct{}
}

// serve starts one on free ports and ends it with the test. It returns when it is ready.
func serve(t testing.TB, dir string, brokers []string, flags ...string) *replica {
	t.Helper()
	r, ready := launch(t, dir, brokers, flags...)
	r.await(t, ready, "ready")
	return r
}

// launch is serve that returns when the listeners are open; ready is closed later.
func launch(t testing.TB, dir string, brokers []string, flags ...string) (r *replica, ready <-chan struct{}) {
	t.Helper()
	args := append([]string{"serve", "--http-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--log-format=json",
		"--stream-replicas=3", "--nats-url=" + strings.Join(brokers, ","), "--data-dir=" + dir}, flags...)
	r = &replica{cmd: exec.Command(registry, args...), ended: make(chan struct{})}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening, isReady := make(chan struct{}), make(chan struct{})
	go r.follow(stderr, map[string]chan struct{}{"listening": listening, "ready": isReady})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.said())
		}
	})
	r.await(t, listening, "listening")
	return r, isReady
}

func (r *replica) await(t testing.TB, said <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-said:
	case <-r.ended:
		t.Fatal("registry serve ended: " + r.said())
	case <-time.After(patience):
		t.Fatal("registry serve is never " + what)
	}
}

// follow closes the channels of said, which is its own, whose names are messages of the log.
func (r *replica) follow(stderr io.Reader, said map[string]chan struct{}) {
	defer close(r.ended)
	in := bufio.NewScanner(stderr)
	for in.Scan() {
		r.mu.Lock()
		r.log.Write(append(in.Bytes(), '\n'))
		r.mu.Unlock()
		var line struct{ Msg, HTTP, Admin string }
		if json.Unmarshal(in.Bytes(), &line) != nil || said[line.Msg] == nil {
			continue
		}
		if line.Msg == "listening" {
			r.HTTP, r.Admin = "http://"+line.HTTP, "http://"+line.Admin
		}
		close(said[line.Msg])
		delete(said, line.Msg)
	}
	_ = r.cmd.Wait() // the tests look at what it did
}

// stop ends it in order and returns its exit status.
func (r *replica) stop() int {
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-r.ended:
	case <-time.After(patience):
		_ = r.cmd.Process.Kill()
		<-r.ended
	}
	return r.cmd.ProcessState.ExitCode()
}

func (r *replica) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// projection is what the tests use of the admin listener's /projection.
type projection struct {
	Checkpoint, LastSequence, Lag uint64
	Digest, StreamEpoch           string
	CaughtUp                      bool
	LastError                     *string
}

func (r *replica) projection(t testing.TB) (p projection) {
	t.Helper()
	a := get(t, r.Admin+"/projection", nil)
	if err := json.Unmarshal(a.body, &p); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	return p
}

// well says that it stands at a sequence, or behind, and has nothing to complain of.
func (r *replica) well(t testing.TB, sequence uint64) bool {
	p := r.projection(t)
	return p.Checkpoint >= sequence && p.LastError == nil
}

// answer is an HTTP answer, unpacked by nobody.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// client keeps no connections: replicas come and go.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, Timeout: 20 * time.Second}

func ask(url string, header http.Header) (a answer, err error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
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

func get(t testing.TB, url string, header http.Header) answer {
	t.Helper()
	a, err := ask(url, header)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
