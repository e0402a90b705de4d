// Package bucket stores snapshots in a JetStream object store, where other replicas and later
// starts find them.
//
// # Promises
//
//   - A name stands for one content forever: it contains the stream, its history, the sequence, the
//     digest and the time, and Put never reuses an existing name.
//   - Every object that List returns was complete when it was put. If a Put ends half-way, by an
//     error or kill -9, it leaves chunks without a name. RemoveOrphans deletes them when they are old.
//   - Nothing read here is trusted: Open returns the bytes, and snapshots.Reader verifies them. A
//     missing chunk is an error at once.
//   - Any number of processes may use a bucket at the same time. Two of them that make a snapshot at
//     the same moment make one too many, and Prune deletes it: no name is used twice, and neither
//     Prune nor RemoveOrphans deletes anything of a Put in progress.
//   - Prune deletes only names of its own stream. Sequences decide which are old, not clocks. The
//     snapshots of lost histories are the way back to them: those of the last four stay.
//   - In a cluster nothing is deleted because a replica lags: acknowledgments count, and names are
//     read from the stream's leader.
//
// # Why
//
// Objects have the layout of the client library's object store, so that "nats object" and similar
// programs can list, fetch and delete them. The library also makes the bucket. Put and Open are our
// own, because the library's Put keeps up to 4,000 chunks in flight, its Get needs a push consumer
// and waits for a missing chunk until the deadline of the whole download, and its Delete leaves a
// message forever. Here a chunk is one acknowledged publish and one direct get, or one request to
// the leader, so one chunk bounds the memory.
//
// The bucket's stream permits roll-ups, as the library makes it: other programs put and delete with
// them. Package bucket sends none, and in a cluster only the role that makes snapshots may publish
// here. A roll-up could only delete data that is derived from the stream of events.
//
// There is no lock: it would save a second snapshot of one minute, and cost a lease, its renewal and
// what to do when it is lost.
package bucket
