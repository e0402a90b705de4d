// Package deploy holds the files that run the registry on machines, and tests of these files. README.md installs the
// registry on one machine, cluster.md on several, and operating.md keeps it running. The program does not use this package.
//
// The tests build the program, make one set of secrets, and try
//
//   - accounts: a broker loads nats/*.conf, and the program's commands connect as its users (roles_test.go, replies_test.go);
//   - TLS, the edge and the cache: real brokers, replicas and varnishd (tls_test.go, edge_test.go, cache_test.go);
//   - manifests, Compose file and units: they match their own schemas, and systemd reads them (manifests_test.go);
//   - alerts and dashboard: a running registry exports each metric (prometheus_test.go);
//   - the commands of README.md, cluster.md and operating.md (commands_test.go).
//
// Slow tests need the build tag nightly. The race detector would see nothing of other processes, so nothing runs with it.
//
// The cache is Varnish because it can be told to obey CDN-Cache-Control. nginx and Caddy know only Cache-Control, in which
// s-maxage forbids serving stale answers. Users of the brokers are nkeys: the brokers' files hold only public keys, and no
// password crosses the network. Permissions are in one file instead of signed tokens, because a file can be read and compared.
package deploy
