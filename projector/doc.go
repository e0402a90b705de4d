// Package projector follows the event stream. It keeps the read model and the store at the latest state of each
// subject, purges the messages before a removal, and publishes a latest state again if another message has displaced
// it in the stream.
//
// Start with Run in projector.go, which runs one session after another. A session finds the stream, checks that it
// is the one that was read before, and reads the messages after the checkpoint: the first by a request, the others
// by a consumer. Each batch is decoded on all CPUs, applied under one lock, and added to the next commit. A commit
// copies rejected events and then saves. Applying an event again is harmless. So if the position is in doubt, the
// stream is read again from its beginning (a rereading), while the known states stay and are shown
// (events/CONTRACT.md#another-stream).
//
//	projector.go   Projector, Run: one session after another
//	position.go    where a session begins to read, and which ends it is to reach
//	projection.go  the read model and its position in the stream
//	source.go      the stream: find, recognize, refuse, create
//	consumer.go    the messages of one session
//	decode.go      from messages to records and lines
//	save.go        one commit after another
//	upkeep.go      after a commit: purges, and displaced states
//	rejected.go    the copies of rejected events
//	progress.go    Progress, and the sentences for an operator
//	config.go      Config, and the options of a connection
//	rebuild.go     Replace and Replay: a new model, read from the stream alone
//	recover.go     Recovery: publish known states into a stream that has lost them
//	validation.go  the service that says whether an event is valid
package projector
