// Package broker is the JetStream server that runs inside the registry's process:
// `registry serve` uses it unless an external broker is named, and so does every test.
//
// # Promises
//
//   - What it acknowledges is on the disk: SyncAlways is on (DESIGN.md, "How an event
//     arrives"; an atomic batch is synced once, at its end). Before it takes clients it syncs what a killed
//     predecessor had only written, since it acknowledges that as a duplicate.
//   - It never ends the process, traps no signal, and writes below Config.StoreDir only.
//   - It opens one listener at most, the one of Config.Addr. A configuration file that asks
//     for another one is refused by name rather than ignored.
//   - Off loopback nobody connects without being a user of the configuration file. An
//     accounts block alone does not count as users (GHSA-fr2g-9hjm-wr23).
//   - A disk that was full or read-only and is not any more costs no restart of the process (Recover).
//   - It takes no lock on its directory: the caller holds the data directory's lock before
//     it calls Start, because two servers on one store would both write.
//
// # Why
//
// The projector connects through memory (Connect), as a user of its own that is made up at
// every start. So it needs no password in a file, works when nothing listens, and cannot be
// shut out by the operator's users. The alternative, a loopback connection with a configured
// password, fails in each of these three.
//
// The configuration file is read through an allow-list of settings. A deny-list of listeners
// would have to grow with every release of the server.
//
// # After a full disk
//
// A stream whose write failed keeps the error until its files are opened again (nats-server's fileStore.werr, and
// the stream's own), because it does not know how much of that write is on the disk. Nothing but a new server opens them:
// JetStream cannot be turned off and on alone, which would leave the accounts' services and the
// consumers of the old one behind. So Recover ends the server as a process does that stops, and starts one with the same
// options. Opening a stream cuts a torn last record off; acknowledged ones were synced before it. The consumers were
// kept in memory: the projector sees a broker that was away, and compares the stream with its checkpoint as ever.
//
// It is done for errors that mean that nothing was written. After an input/output error, or a sync that failed for whatever
// reason (some disks have no room only then), a page may look written and not be: the message would be found when it
// is sent again, acknowledged as a duplicate, and lost with the power. So one such error on any stream counts for all.
package broker
