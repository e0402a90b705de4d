// Package events is the contract between the moderation backend and the registry: the types
// of event, their bounds, subjects and JSON, and what the stream that carries them is like.
// A Go backend imports it and publishes with a Publisher.
//
// # Promises
//
//   - Every event carries the whole state of what it is about, so applying it twice, or
//     missing one that a later one supersedes, changes nothing (DESIGN.md, promise 1).
//   - Decode never panics and takes exactly what the API contract, events, allows; what it
//     refuses it names in one line that fits a header (promise 8: one bad event costs one
//     event). Encode and the Publisher refuse the same, so a Go backend finds out first.
//   - Decode gives back what Encode wrote, and CanonicalData is one text for one value:
//     the digest rests on it (promise 4).
//   - After a Run, first or repeated, interrupted before or not, the stream's last message of
//     every subject in it is not older than the run's last of that subject. The duplicate
//     table of the broker alone does not give that: see order.
//   - The JSON Schemas and the AsyncAPI document embedded here accept what Decode accepts,
//     but for the rules JSON Schema cannot express, which a test lists.
//
// # Why
//
// Data is a closed interface of plain values instead of one struct with optional members:
// the compiler then finds the switch that forgot a type.
//
// Decoding walks the tokens of a strict JSON reader instead of unmarshalling into structs.
// It needs to know which members were there (all are required, and null is no value), to
// name the one at fault, and to be cheap: one pass when type comes before data, as Encode
// writes it. Unmarshalling needed pointers for every member and two passes.
//
// The Publisher sends bulk as atomic batches because the broker then syncs to disk once a
// batch, ten times as fast as once a message; pipelining single messages changes nothing
// about the syncs. It remains the way out when a batch is refused.
//
// There is one validate for everything that comes in or goes out; decoding checks only what
// is lost afterwards: presence, JSON types and how a number or a time is written.
package events
