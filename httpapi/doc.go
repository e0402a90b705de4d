// Package httpapi is the registry's public HTTP API: read-only, in Polish, with a site of pages for people. CONTRACT.md has
// its rules and openapi.yaml describes its answers. It serves a [readmodel.View]; it knows neither the stream nor the store.
//
// Start with serveList in lists.go, which reads from top to bottom; then exchange.go, which has its steps.
//
//	public.go      configuration, the table of routes
//	lists.go       lists, checks, batches, ranges
//	exchange.go    a request and its answer: kept bodies, a search in its turn, memory, the body, sending
//	headers.go     what the headers say, and caches
//	failures.go    the table of failures
//	params.go      what a request asks for
//	health.go      whether, and from which state, it is answered
//	body.go        JSON of entries, joined
//	limits.go      memory, turns, rates
//	listener.go    the server's deadlines, connections
//	metrics.go     the counters
//
// The other handlers are in changes.go, ranked.go, donations.go, status.go, avatar.go, documents.go and site.go.
//
// An answer is computed from one view, and body, Registry-Sequence and ETag belong together. Lists and lookups by id wait for
// nothing. Unknown is never clean: readiness is read before the view. A 304 runs no query. Memory is taken before a body is
// made. Query strings, ids and client addresses are in no log and no metric.
//
// Below it are upstream (status probes and avatars), site (pages), verdict (the person check) and admin (the operators'
// listener).
package httpapi
