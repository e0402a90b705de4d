package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// connect reaches the broker, for a command, at whichever of its addresses answers.
func (f natsFlags) connect(name string, urls []string, more ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(strings.Join(urls, ","), append(f.options(name), more...)...)
	if err != nil {
		reasons, telling := f.unreachable(name, urls)
		return nil, fmt.Errorf("cannot reach the broker at %s; %s", reasons, remedy(telling))
	}
	return nc, nil
}

// unreachable asks each address by itself why it cannot be used: of several, the library keeps the last one's reason, and none where
// nobody listens. telling is the first that says more than that nobody does.
func (f natsFlags) unreachable(name string, urls []string) (reasons string, telling error) {
	var all []string
	for _, url := range urls {
		nc, err := nats.Connect(strings.TrimSpace(url), f.options(name)...)
		if err == nil {
			nc.Close()
			err = errors.New("it answers again")
		}
		all = append(all, addresses([]string{url})+": "+err.Error())
		if telling == nil && !errors.Is(err, nats.ErrNoServers) {
			telling = err
		}
	}
	return strings.Join(all, "; "), telling
}

// remedy says what to do about a broker that cannot be reached.
func remedy(err error) string {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &authority):
		return "name the authority of its certificate with --nats-ca"
	case errors.As(err, &invalid), errors.As(err, &host):
		return "give it a valid certificate for this address, or correct --nats-url"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "it speaks no TLS: give it a certificate, or write nats:// for tls://"
	case errors.Is(err, nats.ErrAuthorization):
		return "name this user's file with --nats-creds"
	}
	return "start it (registry serve) or correct --nats-url"
}

// waiting says why the broker cannot be used: in the log, once for each reason.
func (s *server) waiting(err error) {
	why := err.Error()
	if s.flags.external() && errors.Is(err, errNotConnected) {
		reasons, telling := s.flags.unreachable("registry serve", s.flags.NATSURL)
		why = reasons + "; " + remedy(telling)
	}
	if now := "nothing is saved here; waiting for the broker: " + why; *s.live.starting.Swap(&now) != now {
		s.log.Warn("nothing is saved here and the broker cannot be reached; waiting for it", "error", why)
	}
}

// errNotConnected says that nobody could be asked.
var errNotConnected = errors.New("not connected")
