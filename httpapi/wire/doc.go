// Package wire is where the registry's HTTP meets its connections: an [http.Server] with
// deadlines, a bound on connections, and answers that leave in one write.
//
// # Promises
//
//   - No reader can hold up the server for long: 5 s to send a request, 15 s to get the answer and
//     take it, 60 s between two, 16 KiB of headers.
//   - At most so many connections are open as the descriptor limit allows for; more wait to be
//     accepted.
//   - A reader that has closed its sending side gets its answers like any other. Only one that
//     resets the connection, or whom a write does not reach, ends the context of its request.
//     (Where the system does not tell a reset, either does.)
//   - After a request with Transfer-Encoding, and after any of HTTP/1.0, the connection is closed,
//     so that a proxy that frames it differently cannot smuggle a second request.
//   - What a reader receives of an answer is what net/http would have sent, byte for byte but for
//     the order of the header lines. [Conn] changes how many writes that takes, not what is written.
//     [Conn.TryWrite] and a handler's [Conn.Write] are the exception: they send bytes that net/http
//     knows nothing of, and their caller frames them.
//
// # Why
//
// A page is about 12 KB. net/http sends its head and its body in two system calls, and half the cost
// of answering is in system calls: one call instead of two answers a fifth more pages a second. A
// look-up is small. There the header costs: net/http copies, sorts and writes every line of every
// answer, although most lines are the same in all answers of a route until the model changes.
// Callers format these once and [Conn.InsertHeader] splices them in, which saves 15% of the
// CPU time of a look-up. A larger write buffer, the obvious alternative to joining, cannot be
// configured in net/http.
//
// net/http sets eight deadlines for each request, and Conn passes each on. To note them and set
// only those that a call waits for saved at most 5 to 8% of a look-up's CPU time, in 75
// lines.
package wire
