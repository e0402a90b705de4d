package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"example.org/registry/cmd/registry/internal/cli"
	"example.org/registry/events/natserr"
)

// main turns a signal into a canceled context and an error into an exit status.
func main() {
	// net/http's client writes unsolicited data of a server to the standard logger. The program
	// itself logs with slog.
	log.SetOutput(io.Discard)

	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go obeySignals(signals, cancel)

	err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	os.Exit(reportError(os.Stderr, err))
}

// sameSignalWithin is how long after the first signal other signals do not count: timeout(1) and some
// supervisors signal both the process and its group.
const sameSignalWithin = 500 * time.Millisecond

// obeySignals stops the program at the first signal and ends it at the second. It does not use
// signal.NotifyContext, which can lose a second signal that follows closely.
func obeySignals(signals <-chan os.Signal, stop context.CancelFunc) {
	<-signals
	firstAt := time.Now()
	stop()
	for range signals {
		if time.Since(firstAt) > sameSignalWithin {
			os.Exit(reportError(os.Stderr, errors.New("ended by a second signal before everything was done")))
		}
	}
}

// Exit statuses (cmd/registry/CONTRACT.md#exit-status).
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// reportError writes a failure as one line and returns its exit status.
func reportError(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	line := "registry: " + natserr.OneLine(err)
	if _, isUsage := errors.AsType[cli.UsageError](err); isUsage {
		writeLine(stderr, line+" (--help explains the commands and flags)")
		return exitUsage
	}
	writeLine(stderr, line)
	return exitFailed
}

// writeLine writes a line, or gives up after a second: a pipe that nobody reads may be full.
func writeLine(w io.Writer, line string) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = fmt.Fprintln(w, line) // nobody can be told of an error
	}()
	select {
	case <-written:
	case <-time.After(time.Second):
	}
}

// commands is the command line, with a field for each command.
type commands struct {
	Serve    serveCmd    `cmd:"" group:"Run" help:"Run the registry in one process: broker (embedded unless --nats-url is given), projector and HTTP."`
	Publish  publishCmd  `cmd:"" group:"Events" help:"Publish events from NDJSON files into the stream, in file order."`
	Snapshot snapshotCmd `cmd:"" group:"Snapshots and copies" help:"Create, list, verify and restore snapshots."`
	Export   exportCmd   `cmd:"" group:"Snapshots and copies" help:"Write the latest states of the running server or of a snapshot as NDJSON events."`
	Rebuild  rebuildCmd  `cmd:"" group:"Read model" help:"Ask a running server to rebuild its read model from the stream and to serve the new one."`
	Recover  recoverCmd  `cmd:"" group:"Read model" help:"Publish what the stream has lost, after its loss, a backup or an erasure."`
	Verify   verifyCmd   `cmd:"" group:"Read model" help:"Replay the stream and compare every state with the running server's."`
	Rejected rejectedCmd `cmd:"" group:"Events" help:"Show rejected events."`
	Streams  streamsCmd  `cmd:"" group:"Run" help:"Create the registry's streams."`
	Keys     keysCmd     `cmd:"" group:"Run" help:"Make the keys of the brokers' roles, and the operators' token."`
	Ready    readyCmd    `cmd:"" group:"Run" help:"Exit 0 if a running server is ready, else 1 and the reason. For container health checks."`
	Version  versionCmd  `cmd:"" group:"Run" help:"Print the version, its commit, the Go version and the versions of the key dependencies."`
}

// process holds what a command uses of the process that runs it. A test can fill it and so run any
// command in the test's own process.
type process struct {
	ctx            context.Context
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run parses args, which lack the program's name, and runs a command. The command serve runs until ctx ends,
// and run returns nil if it has saved everything.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	var flags commands
	helpShown := false
	parser, err := newParser(&flags, getenv, stdout, stderr, func(int) { helpShown = true })
	if err != nil {
		return fmt.Errorf("command line: %w", err)
	}

	parsed, err := parser.Parse(args)
	if helpShown { // kong goes on parsing after help, so err may be set
		return nil
	}
	if err != nil {
		return cli.Usagef("%w", err)
	}

	err = parsed.Run(&process{ctx: ctx, getenv: getenv, stdin: stdin, stdout: stdout, stderr: stderr})

	// After a signal, any step of a command may have failed, so its error says little. Only the error of serve
	// matters: it says what was not saved.
	isServe := parsed.Command() == "serve"
	if err != nil && ctx.Err() != nil && !isServe {
		return errors.New("interrupted: run the same command again")
	}
	return err
}

// newParser makes the parser of the command line. The parser calls exit after it has shown help. exit must
// return, since only main may end the process.
func newParser(flags *commands, getenv func(string) string, stdout, stderr io.Writer, exit func(int)) (*kong.Kong, error) {
	return kong.New(flags,
		kong.Name("registry"),
		kong.Description("A public registry of scammers, scam servers and trusted persons. "+
			"Every flag has an environment variable: --nats-url is REGISTRY_NATS_URL. "+
			"To try it, run registry serve --demo, and open http://localhost:8080."),
		kong.Writers(stdout, stderr),
		kong.Resolvers(environmentResolver(getenv)),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 110, NoExpandSubcommands: true, FlagsLast: true}),
		kong.Exit(exit),
	)
}

// environmentResolver gives a flag that is not on the command line the value of its environment variable.
// An empty variable counts as unset, and --help has no variable.
func environmentResolver(getenv func(string) string) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if value := getenv(variableName(flag.Name)); value != "" && flag.Name != "help" {
			return value, nil
		}
		return nil, nil
	})
}

func variableName(flag string) string {
	return "REGISTRY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
