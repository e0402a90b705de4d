// Package httpapi is the HTTP side of the registry: the public API, read-only and in Polish, and
// the admin listener for operators. It answers from a [readmodel.View] and knows neither the
// stream nor the store behind it: what it needs of them comes as a [Reader], a [State] and a
// [Projection].
//
// # Promises
//
// The numbers are DESIGN.md's.
//
//   - 2: one answer is computed from one view: its body, its Registry-Sequence and its ETag belong
//     together. Registry-As-Of is read before the view, so it never promises more than the view has.
//   - 5: an answer waits for nothing, but for a sequence where the reader asked for one
//     (Registry-Min-Sequence, 2 s at most) and, a text search only, for other text searches
//     ([SearchLimits]). Lists and look-ups by id never stand behind a search.
//     The status and the avatars wait for other people's servers, 6 s at most, and nothing else does.
//   - 7: unknown is never clean. While [Health] says no, lists, checks and donations are 503.
//
// And its own: every answer that a handler writes is in the table of errors or one of the
// described successes of openapi.yaml; query strings, ids and client addresses are in no log and
// no metric; a 304 costs no query, but for a reader of encoded answers who holds a plain one
// (whether the 304 must name the encoded variant is then a matter of the body's size).
//
// # Why
//
// A request for a page is answered in microseconds, so what the layers around it cost is what
// the service costs. Hence one adapter around each handler instead of a chain of middlewares,
// header values that are made once (for good, or for one view) and put into the header map as
// they are, bodies appended into pooled buffers, and one write with its length. An answer that is
// remembered is found by the query string as it was written, before anything is parsed. Below net/http
// the connections of [LimitConnections] send header and body of a page in one system call where
// net/http makes two (a fifth more pages a second), and put the lines into the header that are the
// same in all answers of a route at a state: as a map, net/http would copy, sort and write them anew
// each time (a quarter of what a look-up cost). Nothing else here comes near these two.
//
// CORS is a few lines here and not gin-contrib/cors, which sends * only to a request that has a
// foreign Origin: a shared cache would then give readers on other sites an answer they may not
// read. Compression uses klauspost's encoders and not its gzhttp wrapper, which stands around
// every request, leaves the tag of a 304 without the variant's suffix, and does not know when
// Vary is needed. Both lost to being measured against the contract, not against taste.
//
// What asks other people's servers (status*.go, avatar*.go, upstream*.go) takes them for hostile. A
// question is asked once for everybody who waits, in work that no reader owns, so that neither a
// crowd nor a reader who leaves changes what they see; [Public.Close] ends that work and waits for
// it. Sizes, headers, time, connections and addresses are bounded before anything is read, nothing
// is unpacked, no redirect is followed, and what goes to a log or a metric is our own words: neither
// an id, nor the token, nor a text of theirs. The flights that share a question are written here:
// x/sync/singleflight has no end that can be waited for and no bound.
//
// gin's release mode is a switch of the whole process, and [NewPublic] sets it.
//
// Start reading with [Public.routes], then one handler in lists.go, then answer.go.
package httpapi
