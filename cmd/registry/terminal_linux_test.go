package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal is the screen of a program that runs in a terminal.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File
	read   chan struct{} // closed once the program has let go of the terminal

	mu    sync.Mutex
	shown bytes.Buffer
}

// startInTerminal runs the program in a terminal of its own.
func startInTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	master, slave := newTerminal(t)
	defer slave.Close()
	term := &terminal{master: master, read: make(chan struct{}), cmd: &exec.Cmd{
		Path: binary, Args: append([]string{"registry"}, args...), Dir: t.TempDir(), Env: os.Environ(), Stdin: slave, Stdout: slave, Stderr: slave,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true},
	}}
	require.NoError(t, term.cmd.Start())
	go term.follow()
	t.Cleanup(func() {
		_ = term.cmd.Process.Kill() // it may have ended
		_ = term.cmd.Wait()
		<-term.read
		master.Close()
	})
	return term
}

// newTerminal makes a terminal: what the person has, and what the program has.
func newTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 200})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	require.NoError(t, err)
	return master, slave
}

func (term *terminal) follow() {
	defer close(term.read)
	buf := make([]byte, 4096)
	for {
		n, err := term.master.Read(buf)
		term.mu.Lock()
		term.shown.Write(buf[:n])
		term.mu.Unlock()
		if err != nil {
			return // EIO: the program has ended
		}
	}
}

// lines are the lines that are shown, as the terminal's commands leave them.
func (term *terminal) lines() []string {
	term.mu.Lock()
	defer term.mu.Unlock()
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(term.shown.String(), "\r\n", "\n"), "\n") {
		line = line[strings.LastIndex(line, "\r")+1:]
		lines = append(lines, strings.TrimPrefix(line, "\x1b[2K"))
	}
	return lines
}

// await waits until a line matches.
func (term *terminal) await(t *testing.T, pattern string) {
	t.Helper()
	looked := regexp.MustCompile(pattern)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if slices.ContainsFunc(term.lines(), looked.MatchString) {
			return
		}
	}
	t.Fatalf("no line is %q:\n%s", pattern, strings.Join(term.lines(), "\n"))
}

// interrupt types ^C and returns the exit status.
func (term *terminal) interrupt(t *testing.T) int {
	t.Helper()
	_, err := term.master.Write([]byte{3})
	require.NoError(t, err)
	_ = term.cmd.Wait()
	<-term.read
	return term.cmd.ProcessState.ExitCode()
}

// A person is told that the server is ready in four lines, which stand together, and that everything
// is saved once it has ended. No log line shares its line with the progress.
func TestTerminal(t *testing.T) {
	t.Parallel()
	term := startInTerminal(t, "serve", "--demo", "--http-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--embedded-nats-addr=127.0.0.1:0")
	term.await(t, `^       broker     nats://127\.0\.0\.1:\d+$`)
	lines := term.lines()
	ready := strings.Join(lines, "\n")
	if !regexp.MustCompile(`(?m)^ready  site       http://127\.0\.0\.1:\d+/\n` +
		`       API        http://127\.0\.0\.1:\d+/api\n` +
		`       operators  http://127\.0\.0\.1:\d+/projection\n` +
		`       broker     nats://127\.0\.0\.1:\d+$`).MatchString(ready) {
		t.Errorf("the four lines do not stand together:\n%s", ready)
	}
	logged := 0
	for _, line := range lines {
		if strings.Contains(line, "level=") {
			logged++
			if !strings.HasPrefix(line, "time=") {
				t.Errorf("glued to something: %q", line)
			}
		}
		if strings.Contains(line, "msg=ready") {
			t.Errorf("the log says ready, too: %s", line)
		}
	}
	if logged == 0 {
		t.Errorf("%d lines of the log", logged)
	}
	if status := term.interrupt(t); status != 0 {
		t.Errorf("status %d", status)
	}
	if lines := term.lines(); len(lines) < 2 || lines[len(lines)-2] != "saved, bye" {
		t.Errorf("the end:\n%s", strings.Join(lines, "\n"))
	}
}

// A data directory that cannot be made is not one that is in use.
func TestDataDirectoryThatCannotBeMade(t *testing.T) {
	_, err := start(t, nil, "serve", "--data-dir", filepath.Join("/proc", "registry"))
	if err == nil || strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "cannot be made") || !strings.Contains(err.Error(), "--data-dir") {
		t.Error(err)
	}
}
