// Package demo provides the data of registry serve --demo: about 2,000 invented entries. Start with
// Import.
//
// The entries go through the stream like any others, so that the demonstration shows the real path:
// publisher, broker, projector. Events are the same on every machine and in every run of one day, so an
// interrupted import can be repeated. A run on a later day publishes all events again with later times, since
// about.md says that an unconfirmed report is deleted after 60 days. No chat id can belong to a person.
//
//	events.go  Events: the recorded events, moved to a day
//	import.go  Import: into a stream with the demonstration's mark
//	sample.go  texts for the site
package demo
