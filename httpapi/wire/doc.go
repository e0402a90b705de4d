// Package wire handles the registry's HTTP connections: an [http.Server] with deadlines, a bound on
// connections, and responses that leave in one write.
//
// # Promises
//
//   - No client can hold up the server for long: 5 s to send a request, 15 s to get the response and
//     receive it, 60 s between two, 16 KiB of headers.
//   - The number of open connections is bounded by the descriptor limit; more wait to be accepted.
//   - A client that has half-closed the connection gets its responses like any other. The context of
//     its request ends only if the client resets the connection, or if a write fails. (If the system
//     does not report resets, a half-close also ends it.)
//   - After a request with Transfer-Encoding, and after any of HTTP/1.0, the connection is closed,
//     so that a proxy that frames it differently cannot smuggle a second request.
//   - A client receives what net/http would have sent, byte for byte except for the order of the
//     header lines. [Conn] changes the number of writes, not their content.
//
// # Why
//
// A page is about 12 KB. net/http sends its head and its body in two system calls, and half the
// cost of a response is system calls: one call instead of two serves a fifth more pages a second. A
// lookup is small. There the header costs: net/http copies, sorts and writes every line of every
// response, although most lines are the same in all responses of a route until the model changes.
// Callers format these once and [Conn.InsertHeader] splices them in, which saves 15% of the CPU
// time of a lookup. A larger write buffer, the obvious alternative to joining, cannot be configured
// in net/http.
//
// net/http sets eight deadlines for each request, and Conn passes each on. Recording them and
// setting only those that a call waits for saved at most 5 to 8% of a lookup's CPU time, in 75
// lines.
package wire
