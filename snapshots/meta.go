package snapshots

import (
	"time"

	"example.org/registry/events"
	"example.org/registry/events/stream"
)

// Mark is a message that the stream held.
type Mark struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"` // when the broker stored it
}

// Meta is the position of a store, a model or a snapshot in its stream, and the digest of its states.
type Meta struct {
	stream.Identity
	Sequence uint64 `json:"checkpoint"`         // everything up to it has been read
	Marks    []Mark `json:"marks,omitempty"`    // the last messages read, by which the stream is recognized
	Erased   uint64 `json:"erased,omitempty"`   // no removal up to it waits for a purge
	Complete bool   `json:"complete,omitempty"` // the states have been complete once
	Rewound  bool   `json:"rewound,omitempty"`  // the stream came back in an older state
	Digest   string `json:"digest,omitempty"`   // hexadecimal, of all states
}

// State is the latest state of a subject.
type State struct {
	Sequence uint64 // of the last message with it; 0 if the stream is not known to hold it
	Line     []byte // the event, as EncodeState writes it
}

// EncodeState returns the line of a state.
func EncodeState(d events.Data) ([]byte, error) { return events.Encode(events.StateEvent(d)) }

// Commit is what one transaction writes.
type Commit struct {
	States  map[events.Subject]State
	Lacking []events.Subject // get sequence 0, before States are written
	Meta    Meta
}
