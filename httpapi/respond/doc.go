// Package respond sends the responses of the API and of the site. A handler returns a [Response]; a
// [Sender] turns it into status line, headers, encoding and body, or into a 304. There is no other
// way to respond, so caching, CORS and security headers have one place. The package does not know
// the content of a response: no list, no error of the API, no page.
//
// # The parts
//
//   - response.go: Response, and Sender, which sends it.
//   - headers.go: the headers.
//   - negotiate.go: encodings, entity tags, and which variant a client accepts or has.
//   - cache.go: Cache, the bodies of repeated queries.
//   - cors.go: preflights.
package respond
