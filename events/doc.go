// Package events is the contract between the moderation backend and the registry: the types of
// event, their bounds, subjects and JSON, and the names of the stream that carries them.
// CONTRACT.md says the same to people. Package publish sends events.
//
// # Promises
//
//   - Every event carries the whole state of what it is about, so applying it twice, or missing one
//     that a later one supersedes, changes nothing (promise 1, readmodel/doc.go).
//   - Decode never panics and accepts exactly what the contract allows. It names what it rejects in
//     one line that fits a header (promise 8: one bad event costs one event). Encode refuses the
//     same, so a Go backend finds out first.
//   - Decode gives back what Encode wrote, and AppendData writes one text for one value: the
//     digest rests on it (promise 4). Events that earlier versions wrote decode to the same values
//     forever.
//   - The JSON Schemas and the AsyncAPI document accept what Decode accepts, apart from the rules
//     that JSON Schema cannot express, which a test lists.
//
// # Why
//
// Data is a closed interface of plain values instead of one struct with optional members, so that a
// switch over it shows which kinds it handles.
//
// Decoding walks the tokens of a strict JSON reader instead of unmarshalling into structs. It needs
// to know which members were there (all are required, and null is no value), to name the one at
// fault, and to be cheap: one pass when type comes before data, as Encode writes it. Unmarshalling
// needed a pointer for every member, and two passes.
//
// One validate checks everything that comes in or goes out. Decoding checks only what is lost
// afterwards: presence, JSON types, and how a number or a time is written.
package events
