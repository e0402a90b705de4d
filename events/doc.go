// Package events defines what the moderation backend and the registry agree on: the types of event,
// their bounds, subjects and JSON, and the names of the stream that carries them. CONTRACT.md says the
// same for people, asyncapi.yaml for machines. Package publish sends events.
//
// Every event carries the whole state of its subject, and one function, Compare, says which of two
// states is the latest. So it does no harm to apply an event twice, late, or from another source.
// Everything above this package rests on that.
//
//	event.go     the events and their data
//	order.go     which state is the latest
//	decode.go    reads their JSON; encode.go writes it
//	validate.go  the bounds, and in chatid.go the form of a chat id
//	subject.go   NATS subjects
//	errors.go    the reasons for a rejection
//	stream.go    names of streams and headers
//
// Decode never panics and accepts exactly the events that the contract allows. Its error names the member
// at fault in one line that fits a header. Encode refuses the same events.
package events
