//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// patience bounds every wait for what must come; nothing is expected to take this long.
const patience = 90 * time.Second

// process is one of ours, in a group of its own: ctrl-C reaches the soak alone, which ends it.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
}

// begin starts cmd. follow, which may be nil, runs until the process's output ends.
func begin(cmd *exec.Cmd, follow func()) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() { // ends with the process, which whoever begins it ends
		defer close(p.ended)
		if follow != nil {
			follow()
		}
		_ = cmd.Wait() // ProcessState says it
	}()
	return p, nil
}

// signal is for a process that may have ended.
func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// end signals and waits; what does not listen is killed.
func (p *process) end(s os.Signal) {
	p.signal(s)
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.signal(os.Kill)
		<-p.ended
	}
}

// over says whether it has ended, and how.
func (p *process) over() (string, bool) {
	select {
	case <-p.ended:
		return fmt.Sprint(p.cmd.ProcessState), true
	default:
		return "", false
	}
}

// pause waits; false says that ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// until waits for a condition.
func until(ctx context.Context, what string, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !is() {
		if !pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("never: %s", what)
		}
	}
	return nil
}
