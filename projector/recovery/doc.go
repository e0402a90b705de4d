// Package recovery answers one question: which states of one side win against another's. The sides
// are a server, a snapshot, a file of tombstones and a stream. It publishes what the stream lacks,
// which is registry recover.
//
// Of a subject, the greatest state is true, wherever it comes from (events.Compare). So what is known
// is a union, and the stream lacks every known state that is greater than the stream's own.
//
// # Promises
//
//   - Nothing foreign is mixed: a state gets into a stream of another registry only if its epoch is
//     named, and one of a demonstration never.
//   - No event that another publisher adds meanwhile is overwritten: each is published on condition
//     that the subject's last message is the one that was compared.
//   - Publishing everything leaves nothing to publish. It may be interrupted anywhere and repeated.
package recovery
