// Package projector is the one loop that turns the stream into the read model: receive, decode,
// reject or apply, hand to the store.
//
// # Promises
//
//   - The read model is a pure function of the last valid event of every subject among the
//     messages that the stream still has (DESIGN.md, promise 1): messages are applied in stream order,
//     those at or below the checkpoint are skipped, gaps in the sequence are legal.
//   - The checkpoint never goes back while a Projector lives (promise 3). What the store is given is
//     the records, the checkpoint and the digest of one moment (promise 4), and never a checkpoint
//     behind which a rejected event is still uncopied.
//   - Readers wait for nothing here (promise 5): a broker that is away, a disk that is full, a stream
//     that is another one leave the last state served.
//   - Unknown is never clean (promise 7): CaughtUp is false until the model has reached the end that the
//     stream had at start, and lacks nothing that was erased meanwhile, or has a saved state that was
//     complete once and the broker has not answered for Config.PatienceAtStart, or the stream is not ours
//     any more. While a first replay is under way the store gets records with checkpoint 0: should the
//     process die, the next one replays from the start and does not mistake the half of a registry for a
//     whole one.
//   - One bad event costs one event (promise 8), a panic in decoding or rendering it included: it is
//     copied to the stream of rejected events, counted, logged once and passed over.
//   - A stream that is not ours any more freezes the projector: nothing is applied, nothing is
//     wiped, Progress says why. Only a stream that looked shorter than the checkpoint, and never like
//     anything else, thaws by itself, when the checkpoint's message is back unchanged. A frozen
//     projector looks at the stream at every poll, so that the reason it gives is the present one.
//   - A stream whose settings would lose last states (MaxAge, AllowMsgTTL, MaxMsgs, DiscardOld, no limits
//     retention) is refused; every other difference from the stream that would be made here is
//     one warning.
//   - Subjects without a valid event are those of the contract whose every retained message was
//     rejected. One that a good event reaches, or that is purged, is taken off. A subject that the
//     contract does not have is never listed: it has no state that could be lost.
//
// # Rebuild and verify
//
// A rebuild is a second Projector with a model and a store of its own: Config.Saved names the stream and no
// sequence. Hold makes either stand still, at a sequence to the message, so that two models can be
// compared, or one put in the place of the other. ReadOnly leaves no trace: registry verify is such a
// replay. Rejected is the stream of copies as an operator sees it.
//
// # The parts
//
// Run keeps four kinds of goroutine, and waits for all of them:
//
//	follow   owns the model. It makes a session: verify the stream, receive, apply, until anything
//	         is out of order; and then another one.
//	workers  decode and render chunks of messages, one worker a processor.
//	saver    gives the store what has been applied, within 250 ms or 1 000 events.
//	rejecter copies rejected events and finds subjects that have no valid event left.
//	watch    asks the broker twice a second how long the stream is: lag, erased tails, identity.
//
// # Memory
//
// Bounded: 8 MiB in flight from the broker, 8 MiB received and not yet taken up, 16 MiB being decoded,
// 65 536 records waiting for the store, 4 096 rejections waiting to be copied. Where a bound is
// reached, the part before it waits; at the end of the chain the broker does.
//
// # Why
//
// A session is an ordered consumer made by hand: no acknowledgements, state in the broker's memory,
// started behind the checkpoint, a check that its deliveries have no gap, and a new one whenever anything
// is out of order. The client library has one ready-made, but it holds its lock while it backs
// off for up to ten seconds to recreate its consumer, in which it can neither be stopped nor told
// that the stream has become another one. Sessions are needed in any case: each new consumer must be
// preceded by a look at the stream's identity, since a stream that is deleted and made again is
// delivered from without any error.
//
// The identity questions go to the stream's leader (STREAM.INFO and STREAM.MSG.GET), not to any
// replica by direct access: "there is nothing after the checkpoint" from a replica that is behind
// would skip events.
package projector
