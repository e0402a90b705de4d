package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// main turns a signal into a cancelled context and an error into an exit status, nothing else.
func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go obey(signals, cancel)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	os.Exit(report(os.Stderr, err))
}

// oneSignal is how long signals are taken for the first one: timeout(1) and some supervisors send it to
// the process and to its group.
const oneSignal = 500 * time.Millisecond

// obey asks the program to stop at the first signal and ends it at the second. (With
// signal.NotifyContext, a second signal close behind the first can be lost.)
func obey(signals <-chan os.Signal, stop context.CancelFunc) {
	<-signals
	stop()
	for begun := time.Now(); ; {
		if <-signals; time.Since(begun) > oneSignal {
			break
		}
	}
	os.Exit(report(os.Stderr, errors.New("ended by a second signal before everything was done")))
}
