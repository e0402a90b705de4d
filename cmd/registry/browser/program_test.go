//go:build !race

package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"example.org/registry/events/eventstest"
)

// program is one running registry.
type program struct {
	base  string // address of the site, without a slash at the end
	nats  string // address of its broker
	cmd   *exec.Cmd
	ended chan struct{}
}

// startPrograms builds the registry and starts it twice. stop is never nil.
func startPrograms(dir string) (stop func(), err error) {
	var running []*program
	stop = func() {
		for _, p := range running {
			p.stop()
		}
	}
	binary := filepath.Join(dir, "registry")
	if out, err := exec.Command("go", "build", "-o", binary, "example.org/registry/cmd/registry").CombinedOutput(); err != nil {
		return stop, fmt.Errorf("go build: %w: %s", err, out)
	}
	nobody, err := eventstest.Address()
	if err != nil {
		return stop, err
	}
	for _, one := range []struct {
		to       **program
		awaiting string
		flags    []string
	}{
		{&shared.site, "ready", []string{"--demo", "--data-dir", filepath.Join(dir, "demo"), "--embedded-nats-addr=127.0.0.1:0",
			"--proofs-url=https://proofs.example.org", "--appeals-url=https://appeals.example.org/form"}},
		{&shared.loading, "listening", []string{"--data-dir", filepath.Join(dir, "loading"), "--nats-url=nats://" + nobody}},
	} {
		p, err := start(binary, one.awaiting, one.flags...)
		if err != nil {
			return stop, err
		}
		running = append(running, p)
		*one.to = p
	}
	return stop, publishFixture(shared.site)
}

// start runs "registry serve" on free ports until the log has the awaited line.
func start(binary, awaiting string, flags ...string) (*program, error) {
	all := append([]string{"serve", "--http-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--log-format=json"}, flags...)
	p := &program{cmd: exec.Command(binary, all...), ended: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	found := make(chan error, 1)
	go p.follow(stderr, awaiting, found)
	select {
	case err = <-found:
	case <-time.After(patience):
		err = fmt.Errorf("the log has no line %q", awaiting)
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// follow reads the log to its end, which is that of the program.
func (p *program) follow(stderr io.Reader, awaiting string, found chan<- error) {
	defer close(p.ended)
	lines := bufio.NewScanner(stderr)
	last := ""
	for lines.Scan() {
		last = lines.Text()
		var line struct{ Msg, HTTP, NATS string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == awaiting {
			p.base, p.nats = "http://"+line.HTTP, line.NATS
			found <- nil
		}
	}
	_, _ = io.Copy(io.Discard, stderr) // a line too long for the scanner
	_ = p.cmd.Wait()                   // how it ended is of no interest here
	select {
	case found <- errors.New("the program has ended: " + last):
	default:
	}
}

func (p *program) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}
