package readmodel

import "time"

// StreamIdentity is what tells one stream from another of the same name.
type StreamIdentity struct {
	Name    string
	Epoch   string    // metadata registry-epoch, else the creation time
	Created time.Time // as the broker reports it
}

// Checkpoint is the stream sequence up to which everything has been dealt with, and what
// identifies that position. The zero value means that nothing has been dealt with.
type Checkpoint struct {
	Sequence    uint64
	Stream      StreamIdentity
	MessageID   string    // Nats-Msg-Id of the message at Sequence; "" when none is known
	MessageTime time.Time // when the broker stored it; zero when none is known

	// Doubted says that the stream was seen to be shorter or another one, and that the message at Sequence has
	// not been seen there, unchanged, since.
	Doubted bool
}

// Commit is what one transaction of a store holds: the position travels with the data.
type Commit struct {
	Records    []Record // at most one a key
	Checkpoint Checkpoint
	Digest     Digest // of the model at Checkpoint
}
