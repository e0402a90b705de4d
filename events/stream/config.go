package stream

import (
	"cmp"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// Config returns the event stream as this program creates it (events/CONTRACT.md#stream). history is the
// number of messages kept for each subject, 0 for all. An identity without an epoch gets a random
// one.
func Config(name string, replicas, history int, id Identity) jetstream.StreamConfig {
	perSubject := int64(history)
	if history <= 0 {
		perSubject = -1 // all
	}

	metadata := map[string]string{events.MetadataEpoch: cmp.Or(id.Epoch, events.NewEpoch())}
	if len(id.Follows) > 0 {
		metadata[events.MetadataFollows] = strings.Join(id.Follows, " ")
	}
	if id.Demo {
		metadata[events.MetadataDemo] = "true"
	}

	return jetstream.StreamConfig{
		Name:               name,
		Description:        "Registry events: the whole state of an entry, view total or donation in each",
		Subjects:           []string{events.StreamSubjects},
		Storage:            jetstream.FileStorage,
		Retention:          jetstream.LimitsPolicy,
		Discard:            jetstream.DiscardNew, // a full broker refuses messages instead of dropping old ones
		MaxMsgs:            -1,
		MaxBytes:           -1,
		MaxMsgsPerSubject:  perSubject,
		MaxMsgSize:         events.MaxPayload,
		Replicas:           replicas,
		Duplicates:         100 * time.Millisecond, // in which a repeated Nats-Msg-Id is dropped: the shortest that a broker accepts
		DenyDelete:         true,                   // and AllowRollup stays false: a roll-up of "all" would erase the stream
		AllowDirect:        true,
		AllowAtomicPublish: true,
		Metadata:           metadata,
	}
}

// RejectedConfig returns the stream of copies of rejected events. A broker has one such stream: the epoch
// in the subject of a copy tells which event stream it comes from.
func RejectedConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              events.RejectedStream,
		Description:       "Copies of events that the registry rejected, with the reason",
		Subjects:          []string{events.RejectedPrefix + ">"},
		Storage:           jetstream.FileStorage,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxMsgs:           10_000,
		MaxBytes:          64 << 20,
		MaxAge:            30 * 24 * time.Hour,
		MaxMsgsPerSubject: 1, // a repeated copy, by a replica or a rebuild, adds nothing
		Replicas:          replicas,
		AllowDirect:       true,
	}
}
