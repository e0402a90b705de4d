//go:build unix

// Package registrytest runs the program as a separate process, for tests that check it from outside. Any
// goroutine may call every method. The caller ends each process with End.
//
// Start with Build, Command and Start.
//
//	registrytest.go  Process, Server: start, wait for a line of the log, end
//	ask.go           requests over HTTP, and waiting
//	readers.go       Readers: requests under load
//	compare.go       Same: a comparison with a reference model
package registrytest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Patience bounds every wait for something that must happen, and is much longer than needed.
const Patience = 90 * time.Second

// Build builds the program into dir and returns its path.
func Build(dir string) (string, error) {
	binary := filepath.Join(dir, "registry")
	if out, err := exec.Command("go", "build", "-o", binary, "example.org/registry/cmd/registry").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return binary, nil
}

// Process is a program that a test started.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed once it has ended and its output has been read
}

// Begin starts cmd. If follow is not nil, it reads the process's output in a goroutine, to its end.
func Begin(cmd *exec.Cmd, follow func()) (*Process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}

	p := &Process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		if follow != nil {
			follow()
		}
		_ = cmd.Wait() // ProcessState has the result
	}()
	return p, nil
}

// Signal sends s to the process, which may have ended.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// End sends s, waits until the process has ended, and returns its exit status, or -1 if a signal killed
// the process. It kills a process that does not obey.
func (p *Process) End(s os.Signal) int {
	p.Signal(s)
	select {
	case <-p.ended:
	case <-time.After(Patience):
		p.Signal(os.Kill)
		<-p.ended
	}
	return p.cmd.ProcessState.ExitCode()
}

// Ended returns a channel that is closed once the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// State returns how the process ended, once it has.
func (p *Process) State() *os.ProcessState {
	<-p.ended
	return p.cmd.ProcessState
}

// Command returns "registry serve" on free ports, with its log as JSON, and ready even
// without entries, unless flags say otherwise. binary may also be a test binary that acts as the program if it is called
// "registry".
func Command(binary string, flags ...string) *exec.Cmd {
	args := []string{"registry", "serve", "--http-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--embedded-nats-addr=127.0.0.1:0",
		"--log-format=json", "--min-entries=0"}
	return &exec.Cmd{Path: binary, Args: append(args, flags...)}
}

// Server is one process of "registry serve --log-format=json".
type Server struct {
	*Process
	HTTP, Admin string // base URLs, once it listens
	NATS        string // its broker's URL, once it has caught up

	log string // the name of its file

	mu       sync.Mutex
	messages map[string]bool // of the log
	changed  chan struct{}   // closed when there is another message
}

// Start starts cmd and appends its log to the file log. It calls each, if not nil, with every line.
func Start(cmd *exec.Cmd, log string, each func(line string)) (*Server, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}

	stderr, err := cmd.StderrPipe()
	if err != nil {
		file.Close()
		return nil, err
	}

	s := &Server{log: log, messages: map[string]bool{}, changed: make(chan struct{})}
	s.Process, err = Begin(cmd, func() {
		defer file.Close()
		s.followLog(stderr, file, each)
	})
	if err != nil {
		file.Close()
		return nil, err
	}
	return s, nil
}

// followLog copies the log to the file and reads it.
func (s *Server) followLog(stderr io.Reader, file io.Writer, each func(line string)) {
	in := bufio.NewScanner(stderr)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		_, _ = fmt.Fprintln(file, in.Text()) // without the line, the test that needs it fails
		if each != nil {
			each(in.Text())
		}
		s.readLine(in.Bytes())
	}
	_, _ = io.Copy(io.Discard, stderr) // the scanner stops at a line that is too long, but the process goes on
}

// readLine reads the message of a line of the log, and its addresses: "listening" and "ready" have some.
func (s *Server) readLine(text []byte) {
	var line struct{ Msg, HTTP, Admin, NATS string }
	if json.Unmarshal(text, &line) != nil {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if line.Msg == "listening" {
		s.HTTP = "http://" + line.HTTP
		s.Admin = "http://" + line.Admin
	}
	if line.NATS != "" {
		s.NATS = line.NATS
	}

	if !s.messages[line.Msg] {
		beforeColon, _, _ := strings.Cut(line.Msg, ":") // WaitFor may name this part alone
		s.messages[line.Msg] = true
		s.messages[beforeColon] = true
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// WaitListening waits until the server listens.
func (s *Server) WaitListening(ctx context.Context) error { return s.WaitFor(ctx, "listening") }

// WaitReady waits until the server is ready.
func (s *Server) WaitReady(ctx context.Context) error { return s.WaitFor(ctx, "ready") }

// WaitFor waits until the server has logged any of the messages, alone or followed by a colon and more text.
func (s *Server) WaitFor(ctx context.Context, messages ...string) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()

	for {
		logged, changed := s.hasLogged(messages)
		if logged {
			return nil
		}

		select {
		case <-changed:
		case <-s.ended:
			// The server may have logged the message just before its end.
			if logged, _ := s.hasLogged(messages); logged {
				return nil
			}
			return s.endError()
		case <-ctx.Done():
			return fmt.Errorf("registry serve never said %q; its log ends:\n%s", messages, s.Tail())
		}
	}
}

// hasLogged reports whether the log has any of the messages. changed is closed at the next new message.
func (s *Server) hasLogged(messages []string) (logged bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(messages, func(m string) bool { return s.messages[m] }), s.changed
}

// AdminAddr returns the address of the operators' listener, for --admin-addr.
func (s *Server) AdminAddr() string { return strings.TrimPrefix(s.Admin, "http://") }

// endError returns the error of a server that ended by itself.
func (s *Server) endError() error {
	<-s.ended
	return fmt.Errorf("registry serve ended: %s; its log ends:\n%s", s.cmd.ProcessState, s.Tail())
}

// Log returns the log so far. If earlier servers have used the same file, their lines come first.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Tail returns the end of the log.
func (s *Server) Tail() string {
	const lines = 15
	all := strings.Split(strings.TrimSpace(s.Log()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
