// Package admin is the operators' listener: liveness and readiness, metrics, profiles, the state of
// the projection, a page that shows all of that to people, and the commands behind registry
// snapshot, tombstones, rebuild, verify and export. It speaks English and plain HTTP.
//
// # Promises
//
//   - A web page in an operator's browser reaches nothing here, whatever name it gives this address:
//     every request is checked for its Host, Origin and Sec-Fetch-Site, GET included.
//   - A request with side effects needs a header that no form and no link can send (Registry-Admin: 1)
//     and, if there is a token, the token as a bearer. A password that a browser remembers only opens
//     the page.
//   - A partial response never looks complete: exports, tombstones and records that fail midway close
//     the connection.
//   - /readyz, /projection and the page agree with the public API, because they use the same
//     [httpapi.Health].
//
// The rules are in httpapi/CONTRACT.md#admin and httpapi/CONTRACT.md#readiness.
//
// # Why
//
// The check for foreign origins is our own and not [http.CrossOriginProtection], which lets every
// GET through (/export and /debug/pprof are GETs), believes Sec-Fetch-Site over a foreign Origin
// and takes https://host for http://host; TestCrossOriginProtection records these differences. Host
// is checked because of DNS rebinding, which neither of the other headers reveals.
//
// The server renders the page, by html/template, instead of a script that draws it from
// /projection: it works without scripts, and its few lines of JavaScript only fetch it again.
//
// # The parts
//
// admin.go has the configuration, the routes and the probes; guard.go decides which requests are
// allowed; projection.go is the document of /projection; commands.go serves the program's commands;
// page.go and history.go are the page and the data of its charts. Its style is that of package
// site.
package admin
