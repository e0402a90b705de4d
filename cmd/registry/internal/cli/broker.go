package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"example.org/registry/events/natserr"
)

const (
	dialWithin = 2 * time.Second // for one address of the broker
	askWithin  = 3 * time.Second // for one request to JetStream
)

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

// Check returns an error for invalid flags and unusable files, before anything is started.
func (f BrokerFlags) Check() error {
	if err := f.CheckURLs(); err != nil {
		return err
	}
	if strings.ContainsAny(f.NATSInbox, "*> \t") || strings.HasPrefix(f.NATSInbox, ".") || strings.HasSuffix(f.NATSInbox, ".") {
		return Usagef("--nats-inbox-prefix: %q is not a subject without wildcards, such as _INBOX.replica", f.NATSInbox)
	}
	for _, file := range []struct{ flag, path string }{{"nats-creds", f.NATSCreds}, {"nats-ca", f.NATSCA}} {
		if file.path == "" {
			continue
		}
		text, err := ReadFile(file.path, maxSecret)
		if err != nil {
			return Unreadable("--"+file.flag, file.path, err)
		}
		if file.flag == "nats-creds" && !hasSeed(text) {
			return fmt.Errorf("--nats-creds: %s holds no seed of a user; it must be a .creds file, or one with the seed of an nkey (SU…)", file.path)
		}
		if file.flag == "nats-ca" && !x509.NewCertPool().AppendCertsFromPEM(text) {
			return fmt.Errorf("--nats-ca: %s holds no certificate; it must be PEM, as its authority gives it out", file.path)
		}
	}
	return nil
}

// hasSeed reports whether a file of credentials holds a user's seed.
func hasSeed(text []byte) bool {
	key, err := nkeys.ParseDecoratedUserNKey(text)
	if err == nil {
		key.Wipe()
	}
	return err == nil
}

// CheckURLs rejects addresses that can never be connected to. The error shows no user and no
// password.
func (f BrokerFlags) CheckURLs() error {
	for _, text := range f.NATSURL {
		if err := checkURL(strings.TrimSpace(text)); err != nil {
			return Usagef("--nats-url: %w", err)
		}
	}
	return nil
}

func checkURL(text string) error {
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return errors.New("not an address like nats://127.0.0.1:4222")
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
	default:
		return fmt.Errorf("scheme %q is none of nats, tls, ws, wss", u.Scheme)
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return errors.New("the port must be a number up to 65535")
		}
	}
	return nil
}

// Addresses returns the broker's addresses for messages: without user and password.
func (f BrokerFlags) Addresses() string {
	var shown []string
	for _, text := range f.NATSURL {
		shown = append(shown, withoutUser(text))
	}
	return strings.Join(shown, ", ")
}

func withoutUser(address string) string {
	_, host, found := strings.Cut(address, "@") // neither part may contain another one unescaped
	if !found {
		host = address
	}
	return strings.TrimSpace(host)
}

// Open connects for a command that needs the stream. It fails within a few seconds, with a line
// that names the remedy. name is the command's, for the broker's log. The caller closes the
// connection.
func (f StreamFlags) Open(ctx context.Context, name string) (*nats.Conn, jetstream.JetStream, error) {
	// Waits for a broker that restarts during a long import, but not forever.
	nc, err := f.Connect(name, nats.ReconnectWait(500*time.Millisecond), nats.MaxReconnects(40))
	if err != nil {
		return nil, nil, err
	}
	stream := string(f.Stream)
	js, err := jetstream.New(nc)
	if err == nil {
		err = Advise(natserr.Explain(nc, findStream(ctx, js, stream), jetstream.DefaultAPIPrefix+"STREAM.INFO."+stream))
	}
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("broker at %s: %w", f.Addresses(), err)
	}
	return nc, js, nil
}

func findStream(ctx context.Context, js jetstream.JetStream, stream string) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, err := js.Stream(ctx, stream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("it has no stream %s; start the server once (registry serve), which creates it; "+
			"if it was lost, bring it back with registry recover --create-stream; or correct --stream", stream)
	case err != nil:
		return fmt.Errorf("stream %s: %w", stream, err)
	}
	return nil
}

// Connect connects to any of the broker's addresses.
func (f BrokerFlags) Connect(name string, more ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(strings.Join(f.NATSURL, ","), append(f.Options(name), more...)...)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the broker at %s", f.Diagnose(name))
	}
	return nc, nil
}

// Options returns the options of every connection to a broker outside this process.
func (f NATSFlags) Options(name string) []nats.Option {
	opts := []nats.Option{nats.Name(name), nats.Timeout(dialWithin),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // otherwise the library prints the errors too
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

// credentials accepts a file with a signed token and its key, or with the bare seed of an nkey.
func credentials(file string) nats.Option {
	text, err := ReadFile(file, maxSecret)
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

// Diagnosis explains why a broker cannot be reached.
type Diagnosis struct {
	Reasons string // one for each address
	Remedy  string // what to do
	Back    bool   // an address responds again
}

func (d Diagnosis) String() string { return d.Reasons + "; " + d.Remedy }

// Diagnose tries all addresses concurrently to find why each cannot be used: the client library
// only keeps the last address's reason, and none if nothing listens there. It takes at most twice
// dialWithin.
func (f BrokerFlags) Diagnose(name string) Diagnosis {
	errs := make([]error, len(f.NATSURL))
	var asking sync.WaitGroup
	for i, url := range f.NATSURL {
		asking.Go(func() {
			nc, err := nats.Connect(strings.TrimSpace(url), f.Options(name)...)
			if errs[i] = err; err == nil {
				nc.Close()
				errs[i] = errBack
			}
		})
	}
	asking.Wait()
	var reasons []string
	var first error // that is more specific than a refused connection
	for i, err := range errs {
		reasons = append(reasons, withoutUser(f.NATSURL[i])+": "+err.Error())
		if first == nil && !errors.Is(err, nats.ErrNoServers) {
			first = err
		}
	}
	return Diagnosis{strings.Join(reasons, "; "), connectRemedy(first), errors.Is(first, errBack)}
}

var errBack = errors.New("it answers again")

func connectRemedy(err error) string {
	if errors.Is(err, errBack) {
		return "try again"
	}
	return cmp.Or(natserr.Remedy(err), natserr.NotRunning)
}
