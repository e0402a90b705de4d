// Package projector turns the stream into the read model. It has one loop: receive, decode, reject
// or apply, and pass on to the store. Read Projector.Run first.
//
// # Promises
//
// Numbers are those of readmodel/doc.go.
//
//   - The read model is a pure function of the greatest state of every subject (promise 1): messages
//     are applied in stream order, those at or below the checkpoint are skipped, and gaps in the
//     sequence are legal.
//   - The checkpoint of a Projector never goes back (promise 3). The store receives the records, the
//     checkpoint and the digest of one moment (promise 4), and never a checkpoint past a rejected
//     event that is not copied.
//   - Queries wait for nothing here (promise 5): if the broker is away, the disk is full or the
//     stream is another one, the last state is served.
//   - No message of the stream stays unapplied unnoticed. If the broker does not deliver a message
//     that it has, while nothing else waits to be applied and no PauseAt holds it back, a new session
//     begins within 3 s. If that session does not get the message either, the next one waits twice
//     as long, up to 32 s, so that a slow link is not taken for a broken one.
//   - Progress.AsOf never goes back, and the model has everything that the broker knew at that time:
//     it is the time before the request that returned the stream's last sequence, and takes effect
//     once the model has reached that sequence. So it advances with the polls, under load too. The
//     time at which a message is received proves nothing, since others may be published while it is
//     on its way.
//   - Unknown is never clean (promise 7). CaughtUp is false until the model has reached the end that
//     the stream had at start, and lacks nothing that was displaced since. For a saved state that was
//     complete once, it also becomes true when the state has waited Config.StartupTimeout for a
//     stream that cannot be followed, whatever the reason, or when the stream is another one. During
//     a first replay the store receives records with checkpoint 0, which the next process takes for
//     an empty store: if this process dies, the next one replays from the start, and does not mistake
//     half a registry for a whole one.
//   - One bad event costs one event (promise 8), even if decoding or rendering it panics: it is
//     copied to the stream of rejected events, counted, logged once and skipped.
//   - Copies wait only for the broker's replies to them, since checkpoints on disk wait for copies.
//     Each of several requests counts for itself: if replies are lost, only those requests are
//     repeated, so the work always ends.
//   - A projector whose stream has become another one freezes: nothing is applied, nothing is wiped,
//     and Progress has the reason. If the stream was restored to an older state, that shows even
//     after it has outgrown the checkpoint and displaced the message there (package lineage). A
//     frozen projector thaws by itself only if the stream looked shorter than the checkpoint, and
//     never like anything else, and the checkpoint's message is back unchanged. It checks the stream
//     at every poll, so the reason that it reports is current.
//   - A stream whose settings would lose last states (MaxAge, AllowMsgTTL, MaxMsgs, DiscardOld, no
//     limits retention) is refused. Every other difference from the stream that this program would
//     create is one warning.
//   - Where this server may purge, neither old nor broken messages push a state out of the stream: the
//     true state becomes the last message of its subject again. It is published only after the store
//     has everything up to the message that it follows, and the broker refuses it after any other.
//   - A removal purges no message with a greater state than its own.
//   - A subject of the contract whose retained messages were all rejected is listed as a subject
//     without a valid event. It is removed from that list when a valid event reaches it, or when it
//     is purged. A subject outside the contract is never listed: it has no state that could be lost.
//
// # Tombstones
//
// A removal leaves a tombstone with its revision and time (events/CONTRACT.md#tombstones).
//
// # Rebuild and verify
//
// A rebuild is a second Projector with a model and a store of its own; its Config.Saved names the
// stream and no sequence. PauseAt stops either one exactly at a sequence, so that two models can be
// compared, or one can replace the other. ReadOnly leaves no trace: registry verify is such a
// replay.
//
// # The parts
//
// Run keeps eight kinds of goroutine, and waits for all of them:
//
//	follow   owns the model. It makes a session: verify the stream, receive, apply, until a problem
//	         occurs; then it makes another one.
//	         (projector.go, stream.go, receiver.go, apply.go, catchup.go, freeze.go)
//	workers  decode and render chunks of messages. (decode.go)
//	saver    saves applied events in the store, within 250 ms or 1,000 events. (saver.go)
//	rejecter copies rejected events; it also finds subjects that have no valid event left.
//	         (rejecter.go)
//	eraser   purges the messages before a tombstone, and counts the waiting ones. (eraser.go)
//	restorer publishes the true state of a subject again, after superseded and rejected messages.
//	         (putback.go)
//	watch    polls the broker twice a second for the stream's length: lag, AsOf, erased ends, lost
//	         deliveries, identity. (watch.go)
//	origin   polls a mirror's origin for the same, which the mirror cannot know. (mirror.go)
//
// Package leader queries the broker about the stream; package rejected defines the form of a copy,
// and the operator's view.
//
// # Memory
//
// Bounded: 8 MiB requested from the broker and not yet read (one message, if the broker accepts longer
// ones), 16 MiB being decoded, 65,536 records waiting for the store, 4,096 rejections
// waiting to be copied. If a stage is full, the stage before it waits, and finally the broker does.
// 10,000 subjects wait to be examined, and 100,000 for their state to be put back; further ones are
// not.
//
// # Why
//
// A session is an ordered consumer made by hand: no acknowledgments, state in the broker's memory,
// started after the checkpoint, a check that its deliveries have no gap, and a new one after any
// problem (leader.Reader). The next delivery reveals a gap; if the last delivery is lost, watch notices. The client
// library has a ready-made ordered consumer. But that one holds its lock while it backs off for up
// to ten seconds to recreate itself, and cannot be stopped or told of another stream until then.
// Sessions are needed in any case: the stream's identity must be checked before each new consumer,
// since a deleted and recreated stream delivers without any error.
//
// After a start, the copies that earlier processes made are looked up, one request each, since only
// the stream knows which events are still there. Copying everything again would not change
// anything, but it needs the events, which lie before the saved checkpoint. A copy names its
// subject too, but reading copies takes a right to consume them, and up to 64 MiB.
//
// Requests about the identity go to the stream's leader, never to a replica: package leader
// explains why.
package projector
