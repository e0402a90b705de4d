// Package readmodel holds the registry as its clients see it, and the queries on it. A Renderer turns
// each event into a Record, once per change. A Model applies records and publishes an immutable View
// behind an atomic pointer, from which handlers answer. Start with Model.Apply, then View.List.
//
// A view is one state: everything read from it belongs together, and a query waits for no stream, disk, index
// or other query. What the registry promises besides is in DESIGN.md, with the tests that prove it.
//
// Files: render.go, record.go, row.go (an event becomes a row); model.go, state.go, orders.go (rows
// become a state, and link is the one place that adds a row); view.go, list.go, check.go, who.go,
// ranges.go, feed.go, ranking.go (queries); textindex.go, indexer.go, package textblock (text index).
package readmodel
