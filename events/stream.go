package events

import (
	"crypto/rand"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Names that backends, operators and the projector share (API contract, events).
const (
	DefaultStream   = "REGISTRY"
	StreamSubjects  = "registry.>"
	RejectedStream  = "REGISTRY_REJECTED" // one a broker, whatever the event stream is called
	RejectedPrefix  = "registry-rejected."
	DefaultHistory  = 5 // messages kept of a subject
	MetadataEpoch   = "registry-epoch"
	MetadataDemo    = "registry-demo" // "true" on the demonstration stream
	ContentType     = "application/cloudevents+json"
	HeaderContent   = "Content-Type"
	HeaderReason    = "Registry-Reason"    // one line, at most 200 bytes
	HeaderSequence  = "Registry-Sequence"  // of the rejected message in its stream, decimal
	HeaderSubject   = "Registry-Subject"   // of the rejected message
	HeaderTime      = "Registry-Time"      // when the rejected message was stored, RFC 3339
	HeaderTruncated = "Registry-Truncated" // "1" where the payload was cut at MaxRejected

	MaxRejected = 64 << 10 // bytes of payload kept of a rejected message
)

// StreamConfig is the event stream as this program creates it. history is the number of
// messages kept of a subject, 0 for all; epoch is the stream's identity (NewEpoch).
func StreamConfig(name string, replicas, history int, epoch string) jetstream.StreamConfig {
	perSubject := int64(history)
	if history <= 0 {
		perSubject = -1
	}
	return jetstream.StreamConfig{
		Name:               name,
		Description:        "Registry events: the whole state of an entry, view total or donation in each",
		Subjects:           []string{StreamSubjects},
		Storage:            jetstream.FileStorage,
		Retention:          jetstream.LimitsPolicy,
		Discard:            jetstream.DiscardNew, // a full broker says so instead of forgetting
		MaxMsgs:            -1,
		MaxBytes:           -1,
		MaxMsgsPerSubject:  perSubject,
		MaxMsgSize:         MaxPayload,
		Replicas:           replicas,
		Duplicates:         2 * time.Minute,
		DenyDelete:         true,
		AllowRollup:        true, // tombstones; the broker allows no DenyPurge beside it
		AllowDirect:        true,
		AllowAtomicPublish: true,
		Metadata:           map[string]string{MetadataEpoch: epoch},
	}
}

// RejectedStreamConfig is the stream of copies of rejected events. There is one for the
// broker: the epoch in RejectedSubject keeps the copies of different event streams apart.
func RejectedStreamConfig(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              RejectedStream,
		Description:       "Copies of events that the registry rejected, with the reason",
		Subjects:          []string{RejectedPrefix + ">"},
		Storage:           jetstream.FileStorage,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxMsgs:           10_000,
		MaxBytes:          64 << 20,
		MaxAge:            30 * 24 * time.Hour,
		MaxMsgsPerSubject: 1, // copying again, by a replica or a rebuild, adds nothing
		Replicas:          replicas,
		AllowDirect:       true,
	}
}

// NewEpoch is a random identity for a new stream, safe as a subject token.
func NewEpoch() string { return rand.Text() }
