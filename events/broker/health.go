package broker

import (
	"errors"

	"github.com/nats-io/nats-server/v2/server"
)

// Health is nil while every stream can be written. After a write that failed (a full disk, a disk that has
// gone) the server takes no more events into that stream until it is started again, and says so to
// publishers alone; what the stream holds can still be read. Health may wait for the disk. Any
// goroutine may call it until Shutdown.
func (b *Broker) Health() error {
	h := b.srv.Healthz(&server.HealthzOptions{})
	if h.Error == "" {
		return nil
	}
	return oneLine(errors.New(h.Error))
}
