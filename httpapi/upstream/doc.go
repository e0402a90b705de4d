// Package upstream calls servers of others: the status components, and the chat platform for pictures
// of users. They are slow, wrong or hostile at times, so every call has a deadline and a bound on its
// bytes, follows no redirect, and is shared by all who want its answer. No address of a call, which may
// hold a person's id, and no word of an answer reaches a log or a metric.
//
//	upstream.go   Services, and what it is made of
//	status.go     one round of probes, kept for 15 s
//	avatars.go    pictures: the cache, the limits, what to do when there is none
//	platform.go   the two calls to the chat platform, and the pause when it fails
//	client.go     one call: deadline, bounds, outcome, metrics
//	identicon.go  the generated picture of an id
package upstream
