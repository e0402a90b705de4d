// Package httpapi is the registry's public HTTP API: read-only, in Polish, with a site of pages for people. CONTRACT.md has
// its rules and openapi.yaml describes its answers. It serves a [readmodel.View]; it knows neither the stream nor the store.
//
// Start with [Public.routes] (public.go), then one handler in lists.go, then answer.go: there is one way from a request to
// its answer, and a handler reads from top to bottom.
//
//	public.go, documents.go, site.go              routes, documents, pages
//	lists.go, changes.go, ranked.go, donations.go, status.go, avatar.go   handlers, each in the file of its subject
//	params.go                                     what a request asks for
//	health.go                                     whether, and from which state, it is answered
//	limits.go, listener.go                        memory, turns, rates, connections
//	answer.go, body.go, failures.go, metrics.go   how it is answered, and what is counted
//
// It keeps promises 2, 5 and 7 of readmodel/doc.go: an answer is computed from one view, and body, Registry-Sequence and
// ETag belong together; lists and lookups by id wait for nothing; unknown is never clean. Query strings, ids and client
// addresses are in no log and no metric. A 304 runs no query.
//
// Below it are upstream (status probes and avatars), site (pages), verdict (what the person check says) and admin (the
// operators' listener).
package httpapi
