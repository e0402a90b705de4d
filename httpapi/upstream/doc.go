// Package upstream asks other people's servers: it probes the components of the status page,
// fetches the pictures of a chat platform's users, and draws a picture where there is none.
//
// # Promises
//
//   - A reader waits 6 s at most, and always gets an answer: a status, or a picture.
//   - A question is asked once for everybody who waits for it, in work that no reader owns: neither
//     a crowd nor a reader who leaves changes what the others get. [Services.Close] ends that work
//     and waits for it.
//   - Servers are taken for hostile. Sizes, headers, time, connections and addresses are bounded
//     before anything is read; nothing is decompressed; no redirect is followed; a name of the
//     public DNS never leads to an address that is not public; a picture is passed on only if its
//     bytes are those of a PNG, JPEG, WebP or GIF.
//   - Logs and metrics show our own words: no user's id, no token, no address, no text of theirs.
//   - An id's drawn picture never changes: people recognize each other by it.
//
// The rules are in httpapi/CONTRACT.md#status and httpapi/CONTRACT.md#avatars.
//
// # Why
//
// Work is shared by x/sync/singleflight. What it lacks is beside it: a bound on how much runs, an
// end that can be waited for, and panics that end that work only.
//
// A platform that fails is asked less often, up to once a minute (backOff), where the limit alone
// would let 20 calls a second wait 6 s each.
//
// The dial guard checks addresses after resolution, just before connecting, with the tables of
// code.dny.dev/ssrf: checking the name first would lose to a name that resolves differently the
// second time.
//
// Drawn pictures are smoothed by counting 4×4 samples a pixel, without a graphics library: integers
// alone give the same pixels on every machine, which golang.org/x/image/vector does not promise.
// Runs of samples are counted, not single ones: drawing 512 pixels takes 1.0 ms (and encoding them
// 1.4), where asking each of the four million samples takes 25 ms, and clients that invent ids could
// make us draw without end.
//
// # Memory
//
// Pictures are kept for an hour, in 32 MiB at most; the absence of one for 10 minutes, a failure
// for one.
//
// # The parts
//
// upstream.go puts the rest together and has what every call shares; status.go probes components;
// avatars.go decides what is asked, when, and what is kept; chat.go speaks to the platform;
// dialguard.go keeps calls out of private networks; shared.go has the work that readers share;
// identicon.go draws.
package upstream
