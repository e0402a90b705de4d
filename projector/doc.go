// Package projector follows the event stream: it reads every event, keeps the read model and the
// store at the latest state of each subject, and does the work in the stream that follows from that.
//
// Start with Run in projector.go. A session finds the stream, accepts it, asks for the first message
// after the checkpoint by itself, and consumes from there; each batch is decoded on all CPUs,
// applied under one lock, and handed to the next commit. A commit copies rejected events, saves,
// and then purges behind removals and publishes displaced states again. Applying an event again is
// harmless, so every doubt about the position ends in one way: the stream is read again from its
// beginning, beside the states that are known and shown (events/CONTRACT.md#another-stream).
//
//	projector.go   Projector, Run: one session after another
//	position.go    where the stream is read from, and how far
//	projection.go  the read model and its position in the stream
//	source.go      the stream: find, recognize, refuse, create
//	consumer.go    the messages of one session
//	decode.go      from messages to records and lines
//	save.go        one commit after another
//	upkeep.go      the work in the stream that follows from a commit
//	rejected.go    the copies of rejected events
//	progress.go    Progress, and the sentences for an operator
//	config.go      Config, and the options of a connection
//	rebuild.go     Rebuild and Replay: another model of the stream alone
//	recover.go     Recovery: the way back when a stream was lost
//	validation.go  the service that says whether an event is valid
package projector
