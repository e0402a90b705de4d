// Package demo provides the data of registry serve --demo: about 2,000 invented entries. Start with
// Import.
//
// The entries go through the stream like any others, so that the demonstration shows the real path:
// publisher, broker, projector. Events are the same on every machine and in every run of one day, so an
// interrupted import can be repeated. On a later day, all events are published again with later times, so
// that no report is older than the page about the registry allows. No chat id can belong to a person.
//
//	events.go  Events: the recorded events, moved to a day
//	import.go  Import: into a stream with the demonstration's mark
//	sample.go  texts for the site
package demo
