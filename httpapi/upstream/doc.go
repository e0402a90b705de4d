// Package upstream calls external servers: it probes the components of the status page, and fetches
// the pictures of a chat platform's users. For users without one it generates a picture.
//
// # Promises
//
//   - A client waits 6 s at most, and always gets a response: a status, or a picture.
//   - One request serves all clients that wait for it, in work that belongs to none of them: neither
//     a crowd nor a client that disconnects affects the others. [Services.Close] ends that work and
//     waits for it.
//   - Servers are assumed to be hostile. Sizes, headers, time, and connections are bounded before
//     anything is read; nothing is decompressed; no redirect is followed; a picture is passed on
//     only if its bytes are those of a PNG, JPEG, WebP or GIF.
//   - Logs and metrics contain only our own words: no user's id, no token, no address, no text of
//     other servers.
//   - An id's generated picture never changes: people recognize each other by it.
//
// The rules are in httpapi/CONTRACT.md#status and httpapi/CONTRACT.md#avatars.
//
// # Why
//
// Work is shared by x/sync/singleflight. This package adds a bound on concurrent work, an end that
// callers can wait for, and panics that only end the work itself.
//
// A failing platform is called less often, down to once a minute (backOff). The rate limit alone
// would let 20 calls a second wait 6 s each.
//
// # Memory
//
// Pictures are cached for an hour, in at most 32 MiB; the absence of one for 10 minutes, a failure
// for one.
//
// # The parts
//
// upstream.go combines the parts and has the code that all calls share; status.go probes
// components; avatars.go decides what to request, when, and what to cache; chat.go calls the
// platform; shared.go has the work that clients
// share; identicon.go draws.
package upstream
