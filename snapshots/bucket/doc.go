// Package bucket keeps snapshots in a JetStream object store, where other replicas and later starts
// find them.
//
// # Promises
//
//   - A name stands for one content forever: it has the stream, its history, the sequence, the
//     digest and the time in it, and Put never puts anything under a name that exists.
//   - What List returns was complete when it was put. A Put that ends half-way, by an error or kill
//     -9, leaves chunks that no name leads to. RemoveOrphans erases them when they are old.
//   - Nothing that is read here is trusted: Open returns the bytes, and snapshots.Unpack or Restore
//     verifies them. A missing chunk is an error at once.
//   - Of all processes that use the stream one holds the Lock. It needs no clock but the broker's,
//     and a holder that dies loses it after the lease.
//   - Prune erases only names of its own stream. Sequences decide which are old, and no clock. The
//     snapshots of a history that was lost are the way back: those of the last four stay.
//   - In a cluster nothing is erased because a replica that lags has no message: an acknowledgment
//     counts, and names are read from the stream's leader.
//
// # Why
//
// Objects are laid out as the client library's object store does it, so that "nats object" and any
// such library can list, fetch and delete them. The library also makes the bucket. Put and Open are
// our own, because the library's Put keeps up to 4,000 chunks in flight, its Get needs a push
// consumer and waits for a missing chunk until the deadline of the whole download, and its Delete
// leaves a message forever. Here a chunk is one acknowledged publish and one direct get, or
// one request to the leader, so that one chunk bounds the memory.
//
// So the bucket's stream permits roll-ups, as the library makes it: other programs put and delete
// with them. Package bucket sends none, and in a cluster only the role that makes snapshots may
// publish here. What a roll-up could erase is derived from the stream of events.
//
// The lock is a message in the bucket's own stream, replaced by compare-and-set on its subject's
// last sequence. A key-value bucket would be a second stream for the same compare-and-set.
package bucket
