// Package projector follows the event stream: it reads every event, keeps the read model and the
// store at the latest state of each subject, and does what follows from that in the stream.
//
// Start with Run in projector.go. A session finds the stream, accepts it, asks for the first message
// after the checkpoint by itself, and consumes from there; each batch is decoded on all CPUs,
// applied under one lock, and handed to the next commit. A commit copies rejected events, saves,
// and then purges behind removals and publishes displaced states again. Applying anything again is
// harmless, so every doubt about the position ends in one way: the stream is read again from its
// beginning, beside what is known and shown (events/CONTRACT.md#another-stream).
//
//	config.go      Config, and the options of a connection
//	projector.go   Projector, Run: one session after another
//	session.go     one session: find, accept, consume, poll
//	apply.go       from messages to the model and the next commit
//	save.go        a commit, and what follows from it
//	settings.go    which streams are refused or warned of, and how one is created
//	progress.go    Progress, and the sentences for an operator
//	rejected.go    the copies of rejected events
//	validation.go  the service that says whether an event is valid
//	rebuild.go     Rebuild and Replay: another model of the stream alone
//	recover.go     Recover: the way back when a stream was lost
package projector
