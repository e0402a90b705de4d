package eventstest

import "go.uber.org/goleak"

// ClientLeak is a goroutine of the client library that is no leak of ours: an ObjectStore.Put that ends before
// this goroutine of its has begun leaves it behind for ever (nats.go 1.55.0, on a nil channel; seen once, on a busy
// machine). A connection that is left open has others, which show.
func ClientLeak() goleak.Option {
	return goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
}
