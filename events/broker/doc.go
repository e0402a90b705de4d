// Package broker is the JetStream server that runs inside the registry's process:
// `registry serve` uses it unless an external broker is named, and so does every test.
//
// # Promises
//
//   - What it acknowledges is on the disk: it syncs after each message, and after the last one of
//     an atomic batch. Before it takes clients it syncs what a killed predecessor had only written,
//     since it acknowledges that as a duplicate.
//   - It never ends the process, traps no signal, and writes below Config.StoreDir only.
//   - It opens one listener at most, the one of Config.Addr. A setting of the configuration file
//     that asks for another one is an error that names it.
//   - Off loopback nobody connects without being a user of the configuration file. An accounts
//     block alone does not count as users (GHSA-fr2g-9hjm-wr23).
//   - After a full or read-only disk it goes on without a restart of the process (Recover).
//   - It takes no lock on its directory: the caller holds the data directory's lock before it calls
//     Start, because two servers on one store would both write.
//
// # Why
//
// The projector connects through memory (Connect), as a user that is made up at every start. So it
// needs no password in a file, works when nothing listens, and cannot be shut out by the operator's
// users. A loopback connection with a configured password fails in each of these three.
//
// The configuration file is read through a list of allowed settings. A list of forbidden listeners
// would have to grow with every release of the server.
//
// # After a full disk
//
// A stream whose write failed keeps the error until its files are opened again (fileStore.werr of
// nats-server, and the stream's own), because it does not know how much of that write is on the
// disk. Only a new server opens them: turning JetStream off and on alone would leave the old
// accounts' services and consumers in place. So Recover shuts the server down and starts one with
// the same options. Opening a stream cuts off a torn last record; acknowledged ones were synced
// before it. Consumers are kept in memory: the projector sees a broker that was away, and compares
// the stream with its checkpoint as always.
//
// Recover acts only on errors that mean that nothing was written. After an input/output error, or a
// sync that failed for any reason (some disks have no room only then), a page may look written and
// not be: the message would be found when it is sent again, acknowledged as a duplicate, and lost
// with the power. One such error on any stream is enough.
package broker
