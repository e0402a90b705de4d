package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/natserr"
)

const dialWithin = 2 * time.Second // the most time for connecting to one address of the broker

// NATSFlags are the flags for reaching a broker that is not the embedded one.
type NATSFlags struct {
	NATSCreds string `name:"nats-creds" placeholder:"FILE" help:"Credentials for the broker at --nats-url: a .creds file, or one with the seed of an nkey." group:"Broker and stream"`
	NATSInbox string `name:"nats-inbox-prefix" default:"_INBOX" placeholder:"SUBJECT" help:"Subject prefix on which this user of the broker may receive answers." group:"Broker and stream"`
	NATSCA    string `name:"nats-ca" placeholder:"FILE" help:"Certificate authority (PEM) of the broker at --nats-url, if the system does not know it." group:"Broker and stream"`
}

// BrokerFlags select the broker of a command. serve, whose default is the embedded broker, fills
// them from its own flags.
type BrokerFlags struct {
	NATSURL []string `name:"nats-url" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"Broker, one or more addresses separated by commas. The default is the embedded broker of a server on this machine." group:"Broker and stream"`
	NATSFlags
}

// StreamFlags select the stream of a command.
type StreamFlags struct {
	BrokerFlags
	Stream StreamName `default:"REGISTRY" help:"Name of the event stream." group:"Broker and stream"`
}

// Check returns an error for invalid flags and unusable files, before anything is started. The error shows
// neither the user nor the password in an address.
func (f BrokerFlags) Check() error {
	for _, address := range f.NATSURL {
		if err := checkURL(strings.TrimSpace(address)); err != nil {
			return Usagef("--nats-url: %w", err)
		}
	}
	hasOuterDot := strings.HasPrefix(f.NATSInbox, ".") || strings.HasSuffix(f.NATSInbox, ".")
	if hasOuterDot || strings.ContainsAny(f.NATSInbox, "*> \t") {
		return Usagef("--nats-inbox-prefix: %q is not a subject without wildcards, such as _INBOX.replica", f.NATSInbox)
	}

	if f.NATSCreds != "" {
		// NkeyOptionFromSeed finds the seed in a .creds file, too.
		if _, err := nats.NkeyOptionFromSeed(f.NATSCreds); err != nil {
			return FileError("--nats-creds", f.NATSCreds, err)
		}
	}

	if f.NATSCA != "" {
		if err := nats.RootCAs(f.NATSCA)(&nats.Options{}); err != nil { // the option reads the file
			return FileError("--nats-ca", f.NATSCA, err)
		}
	}
	return nil
}

// checkURL rejects an address that can never be connected to.
func checkURL(text string) error {
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return errors.New("not an address like nats://127.0.0.1:4222")
	}

	if !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return fmt.Errorf("scheme %q is none of nats, tls, ws, wss", u.Scheme)
	}
	return nil
}

// Addresses returns the broker's addresses for messages: without user and password.
func (f BrokerFlags) Addresses() string {
	var shown []string
	for _, address := range f.NATSURL {
		_, host, hasUser := strings.Cut(address, "@") // any other @ is escaped
		if !hasUser {
			host = address
		}
		shown = append(shown, strings.TrimSpace(host))
	}
	return strings.Join(shown, ", ")
}

// Connect connects to any of the broker's addresses, for a command that needs JetStream. It fails
// within a few seconds, with an error that names the remedy. name is the connection's name in the broker's
// log. The caller closes the connection.
func (f BrokerFlags) Connect(name string) (*nats.Conn, jetstream.JetStream, error) {
	if err := f.Check(); err != nil {
		return nil, nil, err
	}

	// A broker may restart during a long import, so a lost connection is tried again, for about 20 s.
	opts := append(f.Options(name), nats.ReconnectWait(500*time.Millisecond), nats.MaxReconnects(40))
	nc, err := f.dial(opts)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot reach the broker at %w", f.explainOutage(err))
	}

	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("broker at %s: %w", f.Addresses(), err)
	}
	return nc, js, nil
}

// dial connects to any of the addresses.
func (f BrokerFlags) dial(opts []nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(strings.Join(f.NATSURL, ","), opts...)

	// The library tries the addresses in a random order and returns the last error. If that error is only that nobody
	// listens, look for an address with an error that says more, such as a wrong password.
	for i := 0; i < len(f.NATSURL) && errors.Is(err, nats.ErrNoServers); i++ {
		nc, err = nats.Connect(f.NATSURL[i], opts...)
	}
	return nc, err
}

// Open connects like Connect, and fails if the broker lacks the stream.
func (f StreamFlags) Open(ctx context.Context, name string) (*nats.Conn, jetstream.JetStream, error) {
	nc, js, err := f.Connect(name)
	if err != nil {
		return nil, nil, err
	}

	_, err = js.Stream(ctx, string(f.Stream))
	if err == nil {
		return nc, js, nil
	}
	defer nc.Close()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil, fmt.Errorf("broker at %s: it has no stream %s; start the server once (registry serve), which creates it; "+
			"if it was lost, bring it back with registry recover --create-stream; or correct --stream", f.Addresses(), f.Stream)
	}

	err = natserr.Explain(nc, fmt.Errorf("stream %s: %w", f.Stream, err), jetstream.DefaultAPIPrefix+"STREAM.INFO."+string(f.Stream))
	return nil, nil, fmt.Errorf("broker at %s: %w", f.Addresses(), Advise(err))
}

// Options returns the options of every connection to a broker outside this process.
func (f NATSFlags) Options(name string) []nats.Option {
	opts := []nats.Option{nats.Name(name), nats.Timeout(dialWithin),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // otherwise the library prints the errors too
	}
	if f.NATSCreds != "" {
		opts = append(opts, readCredentials(f.NATSCreds))
	}

	if f.NATSInbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(f.NATSInbox))
	}
	if f.NATSCA != "" {
		opts = append(opts, nats.RootCAs(f.NATSCA))
	}
	return opts
}

// readCredentials returns the option for a file with a signed token and its key, or with an nkey's seed alone.
func readCredentials(file string) nats.Option {
	text, _ := os.ReadFile(file) // Check has read the file without an error
	hasToken := bytes.Contains(text, []byte("NATS USER JWT"))
	seedOption, err := nats.NkeyOptionFromSeed(file)
	if err != nil || hasToken {
		return nats.UserCredentials(file)
	}
	return seedOption
}

// Diagnose returns nil if the broker can be reached, and else an error that says why not and what to do.
func (f BrokerFlags) Diagnose(name string) error {
	nc, err := f.dial(f.Options(name))
	if err != nil {
		return f.explainOutage(err)
	}
	nc.Close()
	return nil
}

// explainOutage adds the addresses and the remedy to the error of a connection.
func (f BrokerFlags) explainOutage(err error) error {
	return fmt.Errorf("%s: %w; %s", f.Addresses(), err, cmp.Or(natserr.Remedy(err), natserr.NotRunning))
}
