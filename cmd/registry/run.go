package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// cli is the command line: one field a command.
type cli struct {
	Help     helpFlag    `short:"h" help:"Explain the command and its flags."`
	Serve    serveCmd    `cmd:"" help:"Run the registry: broker (embedded unless --nats-url is given), projector and HTTP in one process."`
	Publish  publishCmd  `cmd:"" help:"Publish events from NDJSON files into the stream, in file order."`
	Snapshot snapshotCmd `cmd:"" help:"Snapshots of the read model: create, list, verify, restore."`
	Export   exportCmd   `cmd:"" help:"Write the whole content of a snapshot, or of the running server, as NDJSON events."`
	Rebuild  rebuildCmd  `cmd:"" help:"Ask a running server to build its read model anew from the stream and to put it in the place of the one that it serves."`
	Verify   verifyCmd   `cmd:"" help:"Replay the stream and compare every record with those of a running server."`
	Rejected rejectedCmd `cmd:"" help:"See to events that were rejected: list, retry, purge."`
	Ready    readyCmd    `cmd:"" help:"Ask a running server whether it is ready: exit 0 if so, else 1 and the reason. For container health checks."`
	Version  versionCmd  `cmd:"" help:"Print the version, the Go version and the versions of the key dependencies."`
}

// process is what a command may use of the process it runs in. Nothing else of the
// environment is read, so a test can run any command inside itself.
type process struct {
	ctx            context.Context
	getenv         func(string) string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run is the whole program: args without the program's name, in; an error for report, out.
// It returns nil when ctx ends during serve and everything has been saved.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) error {
	var flags cli
	parser, err := newParser(&flags, getenv, stdout, stderr)
	if err != nil {
		return fmt.Errorf("command line: %w", err)
	}
	parsed, err := parser.Parse(args)
	if errors.Is(err, errHelpShown) {
		return nil
	}
	if err != nil {
		return usageError{err}
	}
	if err := checkGiven(parsed); err != nil {
		return err
	}
	return parsed.Run(&process{ctx: ctx, getenv: getenv, stdin: stdin, stdout: stdout, stderr: stderr})
}

func newParser(flags *cli, getenv func(string) string, stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(flags,
		kong.Name("registry"),
		kong.Description("A public registry of scammers, scam servers and trusted persons. "+
			"Every flag has an environment variable: --nats-url is REGISTRY_NATS_URL."),
		kong.Writers(stdout, stderr),
		kong.NoDefaultHelp(),
		kong.Resolvers(fromEnvironment(getenv)),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 110}),
		kong.Exit(func(int) {}), // nothing here may end the process but main
	)
}

// fromEnvironment gives a flag that is not on the command line the value of its variable.
// An empty variable is one that is not set, as in compose files.
func fromEnvironment(getenv func(string) string) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if value := getenv(variable(flag.Name)); value != "" && flag.Name != "help" {
			return value, nil
		}
		return nil, nil
	})
}

// variable is the name of a flag's environment variable.
func variable(flag string) string {
	return "REGISTRY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// errHelpShown ends parsing after --help.
var errHelpShown = errors.New("help shown")

// helpFlag prints the help of the chosen command and stops there: kong's own would exit.
type helpFlag bool

// IgnoreDefault keeps kong from setting the flag from its default.
func (helpFlag) IgnoreDefault() {}

// BeforeReset runs before anything else of the command line is checked.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	return errHelpShown
}
