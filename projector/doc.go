// Package projector is the one loop that turns the stream into the read model: receive, decode,
// reject or apply, and hand on to the store. Read Projector.Run first.
//
// # Promises
//
// Numbers are those of readmodel/doc.go.
//
//   - The read model is a pure function of the last valid event of every subject among the messages
//     that the stream still has (promise 1): messages are applied in stream order, those at or
//     below the checkpoint are skipped, and gaps in the sequence are legal.
//   - The checkpoint never goes back while a Projector lives (promise 3). The store receives the
//     records, the checkpoint and the digest of one moment (promise 4), and never a checkpoint past
//     a rejected event that is not copied.
//   - Readers wait for nothing here (promise 5): while the broker is away, the disk is full or the
//     stream is another one, the last state is served.
//   - Nothing that the stream has stays unapplied unnoticed: a message that the broker has and does
//     not deliver, while nothing else waits to be applied and no Hold is in the way, begins a new
//     session within 3 s. Where the next session does not get it either, the one after that waits
//     twice as long, up to 32 s, so that a slow way is not a broken one.
//   - Progress.AsOf never goes back, and never claims a moment at which the broker knew more: it is
//     taken before the request whose answer said where the stream ended, and holds once the model
//     has got there. So it moves with the polls, under load too. When a message was received says
//     nothing about what was published while it was on its way.
//   - Unknown is never clean (promise 7). CaughtUp is false until the model has reached the end
//     that the stream had at start, and lacks nothing that was erased meanwhile; or until a saved
//     state that was once complete has waited Config.PatienceAtStart for a stream that cannot be
//     followed, whatever the reason, or its stream is not ours any more. During a first replay the
//     store receives records with checkpoint 0, which is an empty store to the next process: if
//     this one dies, the next one replays from the start, and does not mistake half a registry for
//     a whole one.
//   - One bad event costs one event (promise 8), even if decoding or rendering it panics: it is
//     copied to the stream of rejected events, counted, logged once and passed over.
//   - Copies wait for nothing but the broker's answers to them, since checkpoints on disk wait for
//     copies. Of several requests each counts for itself: whatever part of the answers is lost, the
//     rest is not asked for again, so every such work ends.
//   - A stream that is not ours any more freezes the projector: nothing is applied, nothing is
//     wiped, and Progress says why. That it was put back to an older state shows also after it has
//     outgrown the checkpoint and pushed out the message there (package lineage). Only a stream that
//     looked shorter than the checkpoint, and never like anything else, thaws by itself, when the
//     checkpoint's message is back unchanged. A frozen projector looks at the stream at every poll,
//     so that the reason it gives is the present one.
//   - A stream whose settings would lose last states (MaxAge, AllowMsgTTL, MaxMsgs, DiscardOld, no
//     limits retention) is refused. Every other difference from the stream that this program would
//     create is one warning.
//   - Subjects without a valid event are those of the contract whose every retained message was
//     rejected. A subject that a good event reaches, or that is purged, is taken off the list. One
//     that the contract does not have is never listed: it has no state that could be lost.
//
// # Tombstones
//
// A delisting leaves a tombstone, with the time at which the broker stored it; an export's keeps
// the time of the delisting that it repeats (events/CONTRACT.md#tombstones).
//
// # Rebuild and verify
//
// A rebuild is a second Projector with a model and a store of its own; its Config.Saved names the
// stream and no sequence. Hold makes either stand still, exactly at a sequence, so that two models
// can be compared, or one put in place of the other. ReadOnly leaves no trace: registry verify is
// such a replay.
//
// # The parts
//
// Run keeps seven kinds of goroutine, and waits for all of them:
//
//	follow   owns the model. It makes a session: verify the stream, receive, apply, until anything
//	         is out of order; then another one. While nothing waits, it has the model compacted.
//	         (projector.go, stream.go, receiver.go, gather.go, apply.go, catchup.go, freeze.go)
//	workers  decode and render chunks of messages. (decode.go)
//	saver    gives the store what has been applied, within 250 ms or 1,000 events. (saver.go)
//	rejecter copies rejected events; beside that it finds subjects that have no valid event left.
//	         (rejecter.go, subjects.go)
//	eraser   purges the messages before a tombstone, and tells how many wait. (eraser.go)
//	watch    asks the broker twice a second how long the stream is: lag, AsOf, erased tails, lost
//	         deliveries, identity. (watch.go)
//	origin   asks a mirror's origin the same, which the mirror cannot know. (mirror.go)
//
// Package leader asks the broker about the stream; package rejected has the form of a copy, and the
// operator's view.
//
// # Memory
//
// Bounded: 8 MiB in flight from the broker (one message, if the broker takes longer ones), 8 MiB
// received and queued, 16 MiB being decoded, 65,536 records waiting for the store, 4,096 rejections
// waiting to be copied. At a bound, the part before it waits; at the end of the chain the broker
// does. 10,000 subjects wait to be examined; more are not examined.
//
// # Why
//
// A session is an ordered consumer made by hand: no acknowledgments, state in the broker's memory,
// started after the checkpoint, a check that its deliveries have no gap, and a new one whenever
// anything is out of order. A gap shows when the next delivery comes; that the last one is lost,
// watch finds out. The client library has one ready-made, but it holds its lock while it backs off
// for up to ten seconds to recreate its consumer, and meanwhile can neither be stopped nor told
// that the stream has become another one. Sessions are needed in any case: the stream's identity
// must be checked before each new consumer, since a stream that is deleted and made again is
// delivered from without any error.
//
// After a start the copies that earlier processes made are looked up, one request each, since only
// the stream knows which events are still there. To copy everything again instead would add nothing
// either, but needs the events, which the saved checkpoint has passed. A copy names its subject
// too, but reading copies takes a right to consume them, and up to 64 MiB.
//
// Questions about the identity go to the stream's leader, never to a replica: package leader says
// why.
package projector
