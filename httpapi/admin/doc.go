// Package admin is the operators' listener: liveness and readiness, metrics, profiles, the state of
// the projection, a page that shows all of that to people, and the commands behind registry
// snapshot, tombstones, rebuild, verify and export. It speaks English and plain HTTP.
//
// # Promises
//
//   - No page in an operator's browser reaches anything here, whatever name it gives this address:
//     every request is checked for its Host, Origin and Sec-Fetch-Site, GET included.
//   - What changes something needs a header that no form and no link can send (Registry-Admin: 1)
//     and, where there is a token, the token as a bearer: a password that a browser remembers opens
//     the page alone.
//   - Half an answer never looks complete: exports, tombstones and records that fail midway cut the
//     connection.
//   - /readyz, /projection and the page say the same as the public API does, because they ask the
//     same [httpapi.Health].
//
// The rules are in httpapi/CONTRACT.md#admin and httpapi/CONTRACT.md#readiness.
//
// # Why
//
// The check for foreign origins is our own and not [http.CrossOriginProtection], which lets every
// GET through (/export and /debug/pprof are GETs), believes Sec-Fetch-Site over a foreign Origin
// and takes https://host for http://host; TestCrossOriginProtection keeps these differences on
// record. Host is checked because of DNS rebinding, which neither looks at.
//
// The page is rendered here, by html/template, rather than drawn by a script from /projection: it
// works without scripts, and its few lines of JavaScript only fetch it again.
//
// # The parts
//
// admin.go has the configuration, the routes and the probes; guard.go decides who may ask;
// projection.go is the document of /projection; commands.go serves what the program's commands
// call; page.go and history.go are the page and what its charts show. Its looks are those of
// package site.
package admin
