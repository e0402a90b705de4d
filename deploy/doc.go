// Package deploy holds what is needed to run the registry on machines, and the tests that keep it
// true. It is no part of the program. Its tests import only events, whose stream names the files
// repeat, and registrytest, which runs the program.
//
// # What the tests try
//
//   - Accounts: a NATS server loads nats/*.conf, and the real commands connect as its users.
//   - Cache: varnishd runs in front of real replicas.
//   - Rules and dashboard: a Prometheus scrapes a running registry, so no query asks for a metric
//     that no program exports.
//   - Unit: systemd reads it.
//   - Manifests and the Compose file: they match their own schemas, kept in testdata. Only a
//     cluster or an engine could say more.
//
// The tests share one set of secrets. What is slow needs the build tag nightly. The race detector
// would see nothing of the other processes, so nothing runs with it.
//
// # Why
//
// The checkers are programs that .ci/run installs, not modules. The schemas of Kubernetes and
// Compose are two files, read by the JSON Schema library that the events need anyway. k8s.io/api
// and compose-go would add some thirty lines to go.mod, Prometheus' parser some two hundred.
//
// The cache is Varnish because it can be told to obey CDN-Cache-Control. nginx and Caddy know only
// Cache-Control, in which s-maxage forbids serving stale answers.
//
// NATS users are nkeys: the server's files hold only public keys, and no password crosses the
// network or stands in an address. Permissions are in one file instead of signed tokens (JWT),
// because a file can be read and compared.
package deploy
