// Package httpapi is the registry's public HTTP API: read-only, in Polish, with a site of pages for people. CONTRACT.md has
// its rules and openapi.yaml describes its answers. It serves a [readmodel.View]; it knows neither the stream nor the store.
//
// Start with serveList in lists.go, which reads from top to bottom. Then read exchange.go, which has the steps that it calls.
//
//	public.go      configuration, the table of routes
//	lists.go       lists, checks, batches, ranges
//	exchange.go    a request and its answer: kept bodies, running a query, memory, the body, sending
//	headers.go     the headers, and how caches treat an answer
//	failures.go    the table of failures
//	params.go      the parameters of requests
//	health.go      readiness, and the state that a request is answered from
//	body.go        bodies, joined from the JSON of entries
//	limits.go      bounds of memory, of searches at once, and of each client's rate
//	listener.go    the server's deadlines, connections
//	metrics.go     the counters
//
// The other handlers are in changes.go, ranked.go, donations.go, status.go, avatar.go, documents.go and site.go.
//
// An answer is computed from one view, so its body, Registry-Sequence and ETag agree. Only a few text searches run at once;
// further searches wait for a turn. Lists without a search and lookups by id never wait. Unknown is never clean: until the model
// has caught up, the answer is 503. The memory of an answer is taken before its body is made. No log and no metric has query
// strings, ids or client addresses.
//
// The subpackages are upstream (status probes and avatars), site (pages), verdict (the person check) and admin (the operators'
// listener).
package httpapi
