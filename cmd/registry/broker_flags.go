package main

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// brokerFlags say which stream a command is about.
type brokerFlags struct {
	NATSURL []string   `name:"nats-url" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"Broker, one or more addresses separated by commas. The default is the embedded broker of a server on this machine." group:"Broker and stream"`
	Stream  streamName `default:"REGISTRY" help:"Name of the event stream." group:"Broker and stream"`
	natsFlags
}

func (f brokerFlags) check() error {
	if err := checkURLs(f.NATSURL); err != nil {
		return err
	}
	return f.natsFlags.check()
}

// natsFlags say how to reach a broker that is not the embedded one.
type natsFlags struct {
	NATSCreds string `name:"nats-creds" placeholder:"FILE" help:"Credentials for the broker at --nats-url: a .creds file, or one with the seed of an nkey." group:"Broker and stream"`
	NATSInbox string `name:"nats-inbox-prefix" default:"_INBOX" placeholder:"SUBJECT" help:"Where this user of the broker may listen to answers." group:"Broker and stream"`
	NATSCA    string `name:"nats-ca" placeholder:"FILE" help:"Certificate authority (PEM) of the broker at --nats-url, where the system's do not vouch for it." group:"Broker and stream"`
}

// check reports a file that cannot be used before anything is started.
func (f natsFlags) check() error {
	if strings.ContainsAny(f.NATSInbox, "*> \t") || strings.HasPrefix(f.NATSInbox, ".") || strings.HasSuffix(f.NATSInbox, ".") {
		return usagef("--nats-inbox-prefix: %q is not a subject without wildcards, such as _INBOX.replica", f.NATSInbox)
	}
	for _, file := range []struct{ flag, path string }{{"nats-creds", f.NATSCreds}, {"nats-ca", f.NATSCA}} {
		if file.path == "" {
			continue
		}
		text, err := os.ReadFile(file.path)
		if err != nil {
			return unreadable("--"+file.flag, file.path, err)
		}
		if file.flag == "nats-ca" && !x509.NewCertPool().AppendCertsFromPEM(text) {
			return fmt.Errorf("--nats-ca: %s holds no certificate; it must be PEM, as its authority gives it out", file.path)
		}
	}
	return nil
}

// checkURLs refuses broker addresses that could never be connected to. User information in
// them never appears in the message.
func checkURLs(urls []string) error {
	for _, text := range urls {
		if err := checkURL(strings.TrimSpace(text)); err != nil {
			return usagef("--nats-url: %w", err)
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
		return fmt.Errorf("not an address like nats://127.0.0.1:4222")
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
	default:
		return fmt.Errorf("scheme %q is none of nats, tls, ws, wss", u.Scheme)
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("the port must be a number up to 65535")
		}
	}
	return nil
}
