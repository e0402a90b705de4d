package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events/eventstest"
)

// unread is a server whose log goes into a small pipe, which the test reads until the server is ready.
type unread struct {
	t                 *testing.T
	cmd               *exec.Cmd
	log               *os.File
	http, admin, nats string
}

func startUnread(t *testing.T) *unread {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() }) // the test may have closed it
	_, err = unix.FcntlInt(r.Fd(), unix.F_SETPIPE_SZ, 4096)
	require.NoError(t, err)

	u := &unread{t: t, log: r, cmd: registrytest.Command(self(t), "--data-dir="+t.TempDir(), "--snapshot-every=0")}
	u.cmd.Stderr = w
	require.NoError(t, u.cmd.Start())
	require.NoError(t, w.Close())
	t.Cleanup(func() { _ = u.cmd.Process.Kill(); _ = u.cmd.Wait() }) // it may have ended
	lines := bufio.NewScanner(r)
	for u.nats == "" {
		require.True(t, lines.Scan(), "the log ended before the server was ready")
		var line struct{ Msg, HTTP, Admin, NATS string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.Msg == "ready" {
			u.http, u.admin, u.nats = "http://"+line.HTTP, "http://"+line.Admin, line.NATS
		}
	}
	return u
}

// causeLines makes the server log more than the pipe takes: nonsense on the broker's port, and
// rejected events.
func (u *unread) causeLines() {
	u.t.Helper()
	nc, err := nats.Connect(u.nats, nats.Timeout(registrytest.Patience))
	require.NoError(u.t, err)
	defer nc.Close()
	for range 40 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(u.nats, "nats://"))
		require.NoError(u.t, err)
		_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")) // the broker may have closed it
		_ = conn.Close()
		_, err = nc.Request("registry.scammers.bad", []byte("{"), registrytest.Patience)
		require.NoError(u.t, err)
	}
}

// answers checks that a new entry is applied and found.
func (u *unread) answers() {
	u.t.Helper()
	entry := eventstest.Entries(1, 5)[0]
	entry.ChatID = "918273645546372819"
	_, err := runWith(u.t.Context(), strings.TrimPrefix(u.admin, "http://"), strings.NewReader(ndjson(u.t, eventstest.Listed(entry, 1))), "publish", "-", "--nats-url="+u.nats)
	require.NoError(u.t, err)
	u.until("the entry is found", func() bool {
		status, body, err := ask(u.http + "/api/check?id=" + entry.ChatID)
		return err == nil && status == http.StatusOK && strings.Contains(string(body), entry.EntryID)
	})
}

func (u *unread) until(what string, is func() bool) {
	u.t.Helper()
	for end := time.Now().Add(registrytest.Patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			u.t.Fatal("never: " + what)
		}
	}
}

// ends sends SIGTERM and checks the exit status.
func (u *unread) ends() {
	u.t.Helper()
	require.NoError(u.t, u.cmd.Process.Signal(syscall.SIGTERM))
	ended := make(chan error, 1)
	go func() { ended <- u.cmd.Wait() }()
	select {
	case err := <-ended:
		require.NoError(u.t, err, "exit status")
	case <-time.After(registrytest.Patience):
		u.t.Fatal("SIGTERM does not end the process")
	}
}

// Nobody reads the log any more: events are applied, requests are answered, and SIGTERM ends the
// process.
func TestLogIsNotRead(t *testing.T) {
	t.Parallel()
	u := startUnread(t)
	u.causeLines()
	u.answers()
	u.ends()
}

// The reader of the log has gone: the server goes on, and counts the lines.
func TestLogReaderIsGone(t *testing.T) {
	t.Parallel()
	u := startUnread(t)
	require.NoError(t, u.log.Close())
	u.causeLines()
	u.answers()
	_, body, err := ask(u.admin + "/metrics")
	require.NoError(t, err)
	require.Regexp(t, regexp.MustCompile(`(?m)^registry_log_lines_dropped_total\{reason="unread"\} [1-9]`), string(body))
	u.ends()
}
