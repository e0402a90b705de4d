// Package upstream calls servers of others: it probes the services that /api/status shows, and asks the chat platform for
// pictures of users. These servers are slow, wrong or hostile at times. So every call has a deadline and a bound on its bytes,
// follows no redirect, and is shared by all requests that want the answer. A path may contain a person's id, so logs and metrics
// have no path of a call, and no word of an answer.
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
