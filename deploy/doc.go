// Package deploy holds what is needed to run the registry on machines, and the tests that keep it true. It is no part of the
// program and imports none of its rooms but events, whose names of streams the files repeat.
//
// What a program can check is checked by that program, and where it can be tried it is tried: the accounts by a NATS server
// that loads nats/*.conf, with the real commands as their users; the cache by varnishd before real replicas; rules and
// dashboard by a Prometheus that scrapes a running registry, so that no query asks for what nobody exports; the unit by
// systemd; the container's file system by a process whose root it is. Manifests and the Compose file are compared with their
// own schemas, kept in testdata (only a cluster or an engine could say more, and none is needed to build this repository).
//
// # Why
//
// Checkers are programs that .ci/run installs, not modules: the schemas of Kubernetes and Compose, read by the JSON Schema
// library that the events need anyway, are two files, while k8s.io/api and compose-go would add some thirty lines to go.mod,
// and Prometheus' parser some two hundred.
//
// The cache is Varnish, because it is the one of the common ones that can be told to obey CDN-Cache-Control: nginx and Caddy
// know Cache-Control alone, in which s-maxage forbids to serve stale.
//
// NATS users are nkeys: the server's files then hold public keys alone, and passwords neither cross the network nor stand
// in an address. Permissions are in one file and not in signed tokens (JWT), because a file can be read and compared.
package deploy
