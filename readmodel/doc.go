// Package readmodel holds the registry as its clients see it, and the queries on it. A Renderer turns
// each event into a Record, once per change. A Model applies records and publishes an immutable View
// behind an atomic pointer, from which handlers answer. Start with Model.Apply, then View.List.
//
// A view is one state: everything read from it belongs together, and a query waits for no stream, disk, index
// or other query. DESIGN.md has every promise of the registry, with the test that proves it.
//
// Files: render.go, record.go, row.go (an event becomes a row); model.go, state.go, orders.go (rows
// become a state; state.link alone adds a row to the orders and indexes); view.go, list.go, check.go, who.go,
// ranges.go, feed.go, ranking.go (queries); textindex.go, indexer.go, package textblock (text index).
package readmodel
