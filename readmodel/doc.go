// Package readmodel holds the registry as its clients see it, and the queries on it. A Renderer turns
// each event into a Record, once per change. A Model applies records and publishes an immutable View
// behind an atomic pointer, from which handlers answer. Start with Model.Apply, then View.List.
//
// The registry promises:
//
//  1. The read model is a pure function of the greatest state that was read of every subject
//     (events.Compare). No clock, I/O or map order matters.
//  2. A client sees one state: the parts of a response belong together.
//  3. What is known never goes back. The checkpoint does only where the stream is not as it was read.
//  4. A snapshot plus a replay of later events gives the state of a replay from the start.
//  5. Queries do not wait for the stream, a disk, an index or another query, unless a client asks to
//     wait (Registry-Min-Sequence).
//  6. An exact search never lags. A block of the text index that is missing, or older than its rows,
//     makes it slower, never wrong.
//  7. Unknown is never clean: until the model has caught up, the response is 503.
//  8. One bad event costs one event, within bounds of time, memory and output.
//
// Files: render.go, record.go, row.go (an event becomes a row); model.go, state.go, orders.go (rows
// become a state, and link is the one place that adds a row); view.go, list.go, check.go, who.go,
// ranges.go, feed.go, ranking.go (queries); textindex.go, indexer.go, package textblock (text index).
package readmodel
