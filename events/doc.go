// Package events defines the contract between the moderation backend and the registry: the types of
// event, their bounds, subjects and JSON, and the names of the stream that carries them.
// CONTRACT.md describes the same for people. Package publish sends events.
//
// # Promises
//
//   - Every event carries the whole state of its subject, so applying it twice, or missing one that a
//     later one supersedes, changes nothing (promise 1, readmodel/doc.go).
//   - Decode never panics and accepts exactly the events that the contract allows. Its error names the
//     problem in one line that fits a header (promise 8: one bad event costs one event). Encode
//     refuses the same events, so a Go backend finds out first.
//   - Decode is the inverse of Encode, and AppendData writes one text for one value: the digest
//     relies on that (promise 4). Events that earlier versions wrote decode to the same values
//     forever.
//   - The JSON Schemas and the AsyncAPI document accept the events that Decode accepts, apart from
//     the rules that JSON Schema cannot express, which a test lists.
//
// # Why
//
// Data is a closed interface of plain values instead of one struct with optional members, so that a
// switch over it shows which kinds it handles.
//
// Decoding walks the tokens of a strict JSON reader instead of unmarshaling into structs. It has to
// know which members were present (all are required, and null is no value), to name the one at
// fault, and to be cheap: one pass if type comes before data, as Encode writes it. Unmarshaling
// needed a pointer for every member, and two passes.
//
// One function, validate, checks all input and output. Decoding only checks what the values no
// longer show: presence, JSON types, and the notation of a number or a time.
package events
