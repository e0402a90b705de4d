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
//   - What is shown never goes back (promise 3). The checkpoint does only where a stream is not as it
//     was read: it is read again from the newest position that it still holds (position.go).
//   - The store receives the records, the checkpoint and the digest of one moment (promise 4), and never
//     a checkpoint past a rejected event that is not copied.
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
//   - Copies wait only for the broker's replies to them, since checkpoints on disk wait for copies. If
//     replies are lost, only those requests are repeated, so the work always ends.
//   - A projector whose stream is missing, or another registry's, freezes: nothing is applied, nothing
//     is wiped, and Progress has the reason. It thaws by itself when the stream shares a history with
//     what is known again (package lineage).
//   - Of what is known nothing is forgotten because a stream lost it: it is shown, and counted as lacking
//     in the stream (Progress.Unpublished), until a message with it comes.
//   - A stream whose settings would lose last states (MaxAge, AllowMsgTTL, MaxMsgs, DiscardOld, no
//     limits retention) is refused. Every other difference from the stream that this program would
//     create is one warning.
//   - Where this server may purge, neither old nor broken messages push a state out of the stream: the
//     true state becomes the last message of its subject again. It is published only after the store
//     has everything up to the message that it follows, and the broker refuses it after any other.
//   - A removal purges no message with a greater state than its own.
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
//	         (projector.go, stream.go, position.go, freeze.go, receiver.go, apply.go, catchup.go,
//	         owed.go, join.go)
//	workers  decode and render chunks of messages. (decode.go)
//	saver    saves applied events in the store, within 250 ms or 1,000 events. (saver.go)
//	rejecter copies rejected events. (rejecter.go)
//	eraser   purges the messages before a tombstone, and counts the waiting ones. (eraser.go)
//	restorer publishes the true state of a subject again, after superseded and rejected messages.
//	         (putback.go)
//	watch    polls the broker twice a second for the stream's length: lag, AsOf, erased ends, lost
//	         deliveries, lost subjects, identity. (watch.go, loss.go)
//	origin   polls a mirror's origin for the same, which the mirror cannot know. (mirror.go)
//
// Package leader queries the broker about the stream; package rejected defines the form of a copy,
// and the operator's view. validation.go answers backends that ask before they publish.
//
// # Memory
//
// Bounded: 8 MiB requested from the broker and not yet read (one message, if the broker accepts longer
// ones), 16 MiB being decoded, 65,536 records waiting for the store, 4,096 rejections
// waiting to be copied. If a stage is full, the stage before it waits, and finally the broker does.
// 100,000 subjects wait for their state to be put back; further ones do not.
//
// # Why
//
// A session is an ordered consumer made by hand: no acknowledgments, state in the broker's memory,
// started after the checkpoint, a check that its deliveries have no gap, and a new one after any
// problem (leader.Reader). The next delivery reveals a gap; if the last delivery is lost, watch
// notices. The client library's ordered consumer holds its lock while it backs off for up to ten seconds,
// and cannot be told of another stream until then: a deleted and recreated stream delivers without any
// error, so its identity must be checked before each new consumer.
//
// Requests about the identity go to the stream's leader, never to a replica: package leader
// explains why.
package projector
