// Package bucket keeps snapshots in a JetStream object store, where other replicas and later starts find
// them.
//
// # Promises
//
//   - A name stands for one content for ever: it holds the stream, its epoch, the sequence, the digest and the
//     time, and nothing is ever put under a name that there is.
//   - What is listed was complete when it was put. A put that ends half-way, by an error or kill -9, leaves
//     chunks that no name leads to; Clean erases them once they are old.
//   - Nothing read here is trusted: Open gives the bytes, and snapshots.Unpack proves them. A chunk that
//     is missing is an error at once.
//   - One at a time: Lock is held by one process of all that use the stream. It needs no clock but the
//     broker's, and a holder that dies is forgotten after the lease.
//   - Only names of the same stream and epoch are pruned: those of a stream that was lost are the way back.
//
// # Why
//
// Objects are laid out as the client library's object store does it, so "nats object" and every such
// library can list, fetch and delete them, and that library makes the bucket. Putting and getting are done here:
// the library's Put keeps up to 4 000 chunks in flight, its Get waits for a missing chunk until the deadline
// of the whole download and needs a push consumer, and its Delete leaves a message behind for ever.
// Here a chunk is one acknowledged publish and one direct get, so memory is bounded by a chunk.
//
// The lock is a message in the bucket's own stream, replaced by compare-and-set on its subject's last
// sequence. A key-value bucket would be a second stream for the same compare-and-set.
package bucket
