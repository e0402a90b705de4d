package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

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

// unreachable asks each address by itself, all at once, why it cannot be used: of several, the library keeps the last one's reason,
// and none where nobody listens. telling is the first that says more than that nobody does. It takes twice dialWithin
// at most.
func (f natsFlags) unreachable(name string, urls []string) (reasons string, telling error) {
	errs := make([]error, len(urls))
	var asked sync.WaitGroup
	for i, url := range urls {
		asked.Go(func() {
			nc, err := nats.Connect(strings.TrimSpace(url), f.options(name)...)
			if errs[i] = err; err == nil {
				nc.Close()
				errs[i] = errAnswers
			}
		})
	}
	asked.Wait()
	var all []string
	for i, err := range errs {
		all = append(all, addresses(urls[i:i+1])+": "+err.Error())
		if telling == nil && !errors.Is(err, nats.ErrNoServers) {
			telling = err
		}
	}
	return strings.Join(all, "; "), telling
}

// errAnswers says that an address can be used again.
var errAnswers = errors.New("it answers again")

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
	case errors.Is(err, errAnswers):
		return "try again"
	}
	return "start it (registry serve) or correct --nats-url"
}

// reachEvery is how often a server without a connection asks why.
const reachEvery = 2 * time.Second

// noteReach takes note of why the broker outside cannot be used, and tells the log where the operator has something else to do.
func (s *server) noteReach(nc *nats.Conn) {
	if nc.IsConnected() {
		s.live.unreached.Store(nil)
		return
	}
	reasons, telling := s.flags.unreachable("registry serve", s.flags.NATSURL)
	if errors.Is(telling, errAnswers) {
		return // the connection comes back by itself
	}
	now := unreached{reasons, remedy(telling)}
	if was := s.live.unreached.Swap(&now); was == nil || was.remedy != now.remedy {
		s.log.Warn("no connection to the broker; tried again", "reason", now.reasons, "remedy", now.remedy)
	}
}

// unreached is why there is no connection to the broker, and what to do about it.
type unreached struct{ reasons, remedy string }

// unreachable is empty while nothing is known of the broker's being away.
func (l *live) unreachable() string {
	if u := l.unreached.Load(); u != nil {
		return u.reasons + "; " + u.remedy
	}
	return ""
}
