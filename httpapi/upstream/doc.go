// Package upstream calls servers of others: the status components, and the chat platform for pictures of users. They are slow,
// wrong or hostile at times, so every call has a deadline and a bound on its bytes, follows no redirect, and is shared by all
// who want its answer. No path of a call, which may hold a person's id, and no word of an answer reaches a log or a metric.
//
// Start with Services.Avatar.
//
//	upstream.go   Services
//	status.go     one round of probes, kept for 15 s
//	avatars.go    pictures: the cache, the limits, pauses after a failure
//	platform.go   the two calls to the chat platform
//	client.go     one call: deadline, bounds, outcome, metrics
//	identicon.go  the generated picture of an id
package upstream
