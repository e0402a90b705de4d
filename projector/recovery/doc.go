// Package recovery answers what a stream lacks of what is known: by a server, a snapshot or a file of
// tombstones. It publishes that, which is registry recover.
//
// Of a subject, the greatest state is true, wherever it comes from (events.Compare). So what is known
// is a union, and the stream lacks every known state that is greater than the stream's own.
//
// # Promises
//
//   - No event that another publisher adds meanwhile is overwritten: each is published on condition
//     that the subject's last message is the one that was compared.
//   - Publishing everything leaves nothing to publish. It may be interrupted anywhere and repeated.
package recovery
