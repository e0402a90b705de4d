package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

const (
	dialWithin = 2 * time.Second // one address of the broker
	askWithin  = 3 * time.Second // one question to JetStream
)

// options are those of every connection to a broker outside this process.
func (f natsFlags) options(name string) []nats.Option {
	opts := []nats.Option{nats.Name(name), nats.Timeout(dialWithin),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // else the library prints what the questions' errors say
	}
	if f.NATSCreds != "" {
		opts = append(opts, credentials(f.NATSCreds))
	}
	if f.NATSInbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(f.NATSInbox))
	}
	if f.NATSCA != "" {
		opts = append(opts, nats.RootCAs(f.NATSCA))
	}
	return opts
}

// credentials understands both kinds of file: a signed token with its key, and the seed of an nkey alone.
func credentials(file string) nats.Option {
	text, err := os.ReadFile(file)
	if err == nil && !strings.Contains(string(text), "NATS USER JWT") {
		var option nats.Option
		if option, err = nats.NkeyOptionFromSeed(file); err == nil {
			return option
		}
	}
	if err != nil {
		return func(*nats.Options) error { return fmt.Errorf("--nats-creds: %w", err) }
	}
	return nats.UserCredentials(file)
}

// prepareFunc sees to the stream before it is looked for.
type prepareFunc func(ctx context.Context, js jetstream.JetStream, stream string) error

// reachStream connects for a command that is useless without the stream: it fails within a few
// seconds, with a line that says what to do. The caller closes the connection.
// prepare, which may be nil, is called before it looks for the stream.
func (f natsFlags) reachStream(ctx context.Context, name string, urls []string, stream string, prepare prepareFunc) (*nats.Conn, jetstream.JetStream, error) {
	where := addresses(urls)
	// A broker that restarts during a long import is waited for, but not for ever.
	nc, err := f.connect(name, urls, nats.ReconnectWait(500*time.Millisecond), nats.MaxReconnects(40))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err == nil && prepare != nil {
		err = prepare(ctx, js, stream)
	}
	if err == nil {
		err = advised(events.Refusal(nc, findStream(ctx, js, stream), jetstream.DefaultAPIPrefix+"STREAM.INFO."+stream))
	}
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("broker at %s: %w", where, err)
	}
	return nc, js, nil
}

// reach is reachStream for the broker and stream of the flags.
func (f brokerFlags) reach(ctx context.Context, name string) (*nats.Conn, jetstream.JetStream, error) {
	return f.reachStream(ctx, name, f.NATSURL, string(f.Stream), nil)
}

func findStream(ctx context.Context, js jetstream.JetStream, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, err := js.Stream(ctx, stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("it has no stream %s; start the server once (registry serve), which makes it, "+
			"where it was lost publish what there was into a new one (registry publish --create-stream), or correct --stream", stream)
	case err != nil:
		return fmt.Errorf("stream %s: %w", stream, err)
	}
	return nil
}

// addresses are the broker's addresses as messages show them: without user and password.
func addresses(urls []string) string {
	var shown []string
	for _, text := range urls {
		_, host, found := strings.Cut(text, "@") // neither may contain another one unescaped
		if !found {
			host = text
		}
		shown = append(shown, strings.TrimSpace(host))
	}
	return strings.Join(shown, ", ")
}
