// Package httpapi is the registry's public HTTP API: read-only, in Polish, with a site of pages for
// people. httpapi/CONTRACT.md has its rules and openapi.yaml describes its responses. It serves a
// [readmodel.View]. It knows neither the stream nor the store: their parts come as a [Reader] and a
// [Readiness].
//
// # Promises
//
// The numbers are those of readmodel/doc.go.
//
//   - 2: one response is computed from one view. Its body, its Registry-Sequence and its ETag belong
//     together. Registry-As-Of is read before the view, so it never promises more than the view
//     has.
//   - 5: a response waits for nothing, with four bounded exceptions: for a sequence that the client
//     asked for, 2 s; for other text searches if it is one itself, 1 s; for upstreams if it is a
//     status or an avatar, 6 s; and for a change if its client asked to wait for one, 25 s. Lists and
//     lookups by id never wait for a search.
//   - 7: unknown is never clean. While [Health] says no, lists, checks and donations are 503.
//
// Three more are this package's own:
//
//   - Every response of a handler is in the table of errors.go or a success that openapi.yaml
//     describes.
//   - Query strings, ids and client addresses are in no log and no metric.
//   - A 304 runs no query, except for a client that accepts compressed responses but has a plain
//     one: the tag in that 304 depends on the size of the body.
//
// # Why
//
// A response takes microseconds, so the code around a handler costs as much as the handler. So
// there is one adapter instead of a chain of middlewares, header values are made once, bodies are
// appended into pooled buffers, and cached responses are found by the raw query string, before
// anything is parsed.
//
// Every response has Access-Control-Allow-Origin, so gin-contrib/cors only handles preflights: it sends
// the header only to a foreign Origin, and a shared cache would keep a response without it.
//
// Compression uses klauspost's encoders without its gzhttp wrapper, which sends a 304 without the
// suffix of the variant's tag and does not know when Vary is needed.
//
// # Texts from outside
//
// The bounds before normalization are in code points unless they say bytes. NFKC makes at most 18
// code points of one. TestTextsCostWhatTheyAre checks that the allocations for the parameters of
// lists, checks, batches and donations, and for the request headers, grow no faster than the text,
// with a stand-in for the index of ranked search. BenchmarkTexts measures the worst of them.
//
//	text                          bound as sent                 bound of what is made of it
//	search of a list              100; query 4,096 bytes        ~1,800 folded; admission
//	search of a check             100, 300 with a reference     ~1,800 folded, two keys of it; admission
//	id, chatUserId, proofs, wpis  64, of a pasted id 300        compared as it is
//	epoch, prefix                 the request head; 3           compared as it is
//	ids                           100 ids, query 4,096 bytes    compared as they are
//	q                             100                           ~1,800 folded; admission, 2 s, 5 suggestions
//	numbers, choices              300                           6 digits (a sequence 19), a word of a list
//	request headers               16 KiB in all, with the path  read once, left to right, and not kept
//	the person check              300                           package paste
//	chat ids, names, reasons      64, 200, 20,000 bytes         package events; rendering: package readmodel
//	messages of the stream        256 KiB, 8 MiB in flight      package projector
//	registry-validate             256 wait, 16 MiB in all       package projector, the decoder of events
//	the chat platform's replies   profile 64 KiB, image 2 MiB   an avatar hash, bytes as they are: package upstream
//	admin requests                body 64 KiB                   package admin
//	the operator's Markdown       32 KiB or less, at the start  rendered once, its HTML is bounded: package site
//	lines of commands' input      1 MiB                         package events, 256 KiB of it
//
// # The parts
//
// Start with [Public.routes] (public.go), then one handler in lists.go, then route.go.
//
//	public.go                                    routes
//	lists.go, batch.go, ranges.go, ranked.go, changes.go, donations.go, status.go, avatar.go, site.go,
//	apipage.go, documents.go                     handlers, each in the file of its subject
//	poll.go                                      those who wait for changes
//	params.go                                    what a request asks for
//	admission.go, health.go                      whether, and from which state, it is answered
//	places.go                                    who the client is, and its share of places to wait
//	adapter.go, route.go, state.go               from a handler to its response, and what it shares
//	errors.go, metrics.go                        the table of errors, and what is counted
//
// There is one way to respond: a handler parses, asks the model and returns a [respond.Response] or
// an error; package respond sends it. Errors go the same way. Responses of lists, checks and their
// pages come from cacheable, which caches them.
//
// Next to this package are respond (how responses are sent), body (the JSON of entries), wire
// (connections), upstream (status probes and avatars), site (pages), verdict (of the person check) and admin
// (the operators' listener).
package httpapi
