package main

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"example.org/registry/events/broker"
	"example.org/registry/projector"
)

// connect reaches the broker: the embedded one, which it starts, or the one at --nats-url, which
// may be away. stop closes the connection and then the broker.
func (s *server) connect() (nc *nats.Conn, stop func(), err error) {
	if s.flags.external() {
		opts := append(s.flags.natsFlags.options("registry serve"), projector.ConnectOptions()...)
		nc, err := nats.Connect(strings.Join(s.flags.NATSURL, ","), opts...)
		if err != nil {
			return nil, nil, fmt.Errorf("broker at %s: %w", addresses(s.flags.NATSURL), err)
		}
		unwatch := repeat(reachEvery, func() { s.noteReach(nc) })
		return nc, func() { unwatch(); nc.Close() }, nil
	}
	return s.embed()
}

// embed starts the embedded broker and connects to it through memory.
func (s *server) embed() (nc *nats.Conn, stop func(), err error) {
	b, err := broker.Start(broker.Config{
		StoreDir:   s.flags.brokerDir(),
		Addr:       s.flags.EmbeddedNATSAddr,
		ConfigFile: s.flags.EmbeddedNATSConfig,
		Logger:     s.log,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w (--embedded-nats-addr, --embedded-nats-config and --data-dir decide about it)", err)
	}
	s.live.brokerURL.Store(new(b.ClientURL()))
	nc, err = b.Connect(projector.ConnectOptions()...)
	if err != nil {
		b.Shutdown()
		return nil, nil, err
	}
	unwatch := s.watchHealth(b)
	return nc, func() { unwatch(); nc.Close(); b.Shutdown() }, nil
}
