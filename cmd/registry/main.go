package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// main turns a signal into a cancelled context and an error into an exit status, nothing else.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default disposition is back: a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	os.Exit(report(os.Stderr, err))
}
