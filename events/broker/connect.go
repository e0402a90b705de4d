package broker

import (
	"fmt"
	"net"

	"github.com/nats-io/nats.go"
)

// Connect opens a connection through memory, allowed to do everything in the registry's
// account, whether or not the broker listens or has users. Options come after the defaults
// (reconnect for ever) and may replace them. The caller closes the connection.
func (b *Broker) Connect(opts ...nats.Option) (*nats.Conn, error) {
	all := []nats.Option{nats.InProcessServer(b), nats.MaxReconnects(-1)}
	if b.current.Load().internal != (credentials{}) {
		all = append(all, nats.UserInfoHandler(b.userInfo))
	}
	nc, err := nats.Connect("", append(all, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: connect: %w", err)
	}
	return nc, nil
}

// InProcessConn is part of nats.InProcessConnProvider: a connection made again is one to the server of that moment.
func (b *Broker) InProcessConn() (net.Conn, error) { return b.current.Load().srv.InProcessConn() }

func (b *Broker) userInfo() (name, password string) {
	internal := b.current.Load().internal
	return internal.name, internal.password
}
