// Package recovery puts back into a stream what the stream has lost: registry recover. It compares
// what a read model knows (Known: that of a server or a snapshot) with what the stream has (Scan),
// and publishes the difference (Plan).
//
// # Which of two states is newer
//
// A stream that came back from a backup shares its messages up to some sequence with the one that
// was known, and has used the sequences after it again. That sequence, the end of what is common,
// is not recorded anywhere, but most messages tell on which side of it they are (see evidence):
//
//   - The known state of a subject at the sequence of its message: both are common.
//   - Another state at that sequence, a message that the model should have applied and did not, one
//     after its checkpoint, one after a marker (events/CONTRACT.md#histories) that the model has not
//     seen: the message is new. So are all that follow.
//   - A subject's last message before its known state: that state is lost, and so are all that were
//     known after it.
//
// A stream of another epoch has nothing in common. A stream that continues the checkpoint
// (lineage.Check) has everything in common. With that, for a subject with a known state S and
// the stream's last state T:
//
//	T             S                                       the newer one is
//	none          any                                     S
//	equal to S                                            both
//	common        lost                                    S
//	new           common                                  T
//	new           lost, or it cannot be known             not known: both sides have changed it
//	cannot be known                                       not known; by the broker's clock, unless one is safer
//
// A tombstone that a file names beside a snapshot is at a sequence of the file's stream, which may be
// another one. A message that removes the subject at that very sequence and time proves that the
// stream has what the file's had up to there, so that sequences decide about this and all earlier
// tombstones. Without such a proof it is not known which is newer.
//
// Where it is not known, the safer state stays: a delisting, or removal, before everything else, and
// of a trusted person the state that no list shows. Of two view totals it is the larger one, and of
// two other states the stream's, which was published after the disaster.
//
// A donation that the model lacks, and whose subject has a common message in the stream, was removed.
//
// # Promises
//
//   - No event that another publisher adds meanwhile is overwritten: each is published on condition
//     that the subject's last message is the one that was compared.
//   - Publishing everything leaves nothing to publish. It may be interrupted anywhere and repeated: a
//     marker comes first, so what the first attempt published is not taken for common.
package recovery
