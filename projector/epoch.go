package projector

import (
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// EpochOf is the identity of a stream: the epoch in its metadata, else its creation time (API contract, the
// stream).
func EpochOf(info *jetstream.StreamInfo) string { return identityOf(info, events.MetadataEpoch).Epoch }
