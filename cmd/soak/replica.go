//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// replica is a "registry serve" and what is left of it from one process to the next. One goroutine at a time
// starts and ends it; others read its addresses while it is not being started.
type replica struct {
	name    string // for what is said of it
	program string
	data    string // data directory
	log     string // file, of all its processes
	flags   []string
	report  *report

	process *process
	ready   chan struct{} // closed when it has said that it is, and its addresses are known
	HTTP    string        // base URLs
	Admin   string
}

func newReplica(name, program, dir, broker string, r *report, flags ...string) *replica {
	return &replica{name: name, program: program, report: r, data: filepath.Join(dir, name), log: filepath.Join(dir, name+".log"),
		flags: append([]string{"serve", "--http-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--log-format=json",
			"--nats-url=nats://" + broker, "--data-dir=" + filepath.Join(dir, name)}, flags...)}
}

// start starts a process.
func (r *replica) start() error {
	log, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(r.program, r.flags...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		log.Close()
		return err
	}
	r.ready = make(chan struct{})
	ready := r.ready
	r.process, err = begin(cmd, func() { defer log.Close(); r.follow(stderr, log, ready) })
	if err != nil {
		log.Close()
	}
	return err
}

// follow keeps the log and reads the addresses from it. A panic is a failure even where the server has caught it.
func (r *replica) follow(stderr io.Reader, log io.Writer, ready chan<- struct{}) {
	in := bufio.NewScanner(stderr)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		_, _ = fmt.Fprintln(log, in.Text()) // it is for those who look
		if strings.Contains(in.Text(), "panic") || strings.HasPrefix(in.Text(), "fatal error") {
			r.report.fail("the %s replica says: %.600s", r.name, in.Text())
		}
		var line struct{ Msg, HTTP, Admin string }
		if json.Unmarshal(in.Bytes(), &line) == nil && line.Msg == "ready" {
			r.HTTP, r.Admin = "http://"+line.HTTP, "http://"+line.Admin
			close(ready)
		}
	}
}

// serving waits until it is ready.
func (r *replica) serving(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-r.ready:
		return nil
	case <-r.process.ended:
		return r.died()
	case <-ctx.Done():
		return fmt.Errorf("the %s replica was never ready; its log ends:\n%s", r.name, r.tail())
	}
}

func (r *replica) died() error {
	how, _ := r.process.over()
	return fmt.Errorf("the %s replica ended by itself: %s; its log ends:\n%s", r.name, how, r.tail())
}

// tail is the end of the log.
func (r *replica) tail() string {
	text, err := os.ReadFile(r.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// projection is what is used of the document of that name.
type projection struct {
	Checkpoint, Lag, IndexSequence, SnapshotSequence uint64
	Digest                                           string
	LastError                                        *string
}

func (r *replica) projection(ctx context.Context) (p projection, err error) {
	a, err := ask(ctx, r.Admin+"/projection", nil)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(a.body, &p)
}

// settled waits until everything up to a sequence is applied, saved and indexed, and nothing is wrong.
func (r *replica) settled(ctx context.Context, sequence uint64) (p projection, err error) {
	if err := r.serving(ctx); err != nil {
		return p, err
	}
	waiting := until(ctx, "the "+r.name+" replica has everything and complains of nothing", func() bool {
		p, err = r.projection(ctx)
		return err == nil && p.Checkpoint >= sequence && p.Lag == 0 && p.LastError == nil &&
			p.SnapshotSequence == p.Checkpoint && p.IndexSequence == p.Checkpoint
	})
	if waiting != nil {
		text, _ := json.Marshal(p) // it only explains
		return p, fmt.Errorf("%w: awaited %d, %s, %v; its log ends:\n%s", waiting, sequence, text, err, r.tail())
	}
	return p, nil
}
