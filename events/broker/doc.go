// Package broker is the JetStream server inside the registry's process. `registry serve` uses it
// unless an external broker is named, and so does every test.
//
// # Promises
//
//   - Everything that it acknowledges is on the disk: it syncs after each message, and after the last
//     one of an atomic batch. Before it accepts clients, it syncs what a killed predecessor had only
//     written, since it acknowledges a repetition of that as a duplicate.
//   - It never ends the process, traps no signal, and writes below Config.StoreDir only.
//   - It opens at most one listener, that of Config.Addr. If a setting of the configuration file
//     asks for another one, the error names it.
//   - Off loopback, only users of the configuration file can connect. An accounts block alone does
//     not count as users (GHSA-fr2g-9hjm-wr23).
//   - After a full or read-only disk it continues without a restart of the process (Recover).
//   - It takes no lock on its directory: the caller holds the data directory's lock before it calls
//     Start, because two servers on one store would both write.
//
// # Why
//
// The projector connects through memory (Connect), as a user with random credentials for each
// start. So it needs no password in a file, works without a listener, and the operator's users
// cannot lock it out. A loopback connection with a configured password fails in all three cases.
//
// The configuration file is read through a list of allowed settings. A list of forbidden listeners
// would have to grow with every release of the server.
//
// # After a full disk
//
// After a failed write, a stream keeps the error until its files are opened again (fileStore.werr
// of nats-server, and the stream's own), because it does not know how much of the write is on the
// disk. Only a new server opens them: turning JetStream off and on alone would leave the old
// accounts' services and consumers in place. So Recover shuts the server down and starts one with
// the same options. Opening a stream cuts off a torn last record; acknowledged records were synced
// before it. Consumers are in memory: the projector sees a broker that was away, and compares the
// stream with its checkpoint as always.
//
// Recover acts only on errors after which nothing was written. After an input/output error, or a
// sync that failed for any reason (some disks report a lack of space only then), a page may look
// written without being on the disk. Its message would be found when it is sent again, acknowledged
// as a duplicate, and lost in a power failure. One such error on any stream prevents a recovery.
package broker
