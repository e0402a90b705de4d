// Package cluster has no code of the program. Its tests run the built registry as several replicas
// on real brokers, and inject faults into brokers, network, disks and replicas: for a minute on
// three JetStream nodes, and for long on one.
//
// # Promises
//
// On three nodes, through changes of leaders, nodes that are killed, paused or return with an empty
// disk, and with two of three gone:
//
//   - Replicas at one sequence send the same bytes under the same ETags, so a balancer may mix them.
//   - No acknowledged event is lost.
//   - Running replicas answer every read, and never from an older state than before.
//   - Afterwards they catch up by themselves, even after a lagging node has shown a shorter stream.
//
// TestSoak, which is a tool with the build tag measure, adds time. Its broker is the embedded one.
// The living replica is never killed: it is paused for seconds, its disk gets full, it is rebuilt,
// makes snapshots and exports, some of them interrupted, answers clients all the time, and gets
// malformed requests. The unlucky replica is killed at random moments and restarted, sometimes with
// a flipped bit in its store or with no store. Poison events come between the others. No read may
// fail, and neither replica may panic. At every quiet point, with broker, network and disk
// restored:
//
//   - both replicas reach the stream's end, report no error, and have one digest, which "registry
//     verify" confirms;
//   - lists in two orders, and some checks and donations, equal the acknowledged events, entry by
//     entry;
//   - a rebuild works.
//
// At the end it compares the minimum of the second quarter with the minimum of the last. Goroutines
// and descriptors may have grown by 2, and the live heap after a collection by 2%, both for an old
// read model and for a fresh one.
//
// # Why
//
// Brokers and replicas are processes, so SIGKILL and SIGSTOP act as on a real machine. A broker is
// the test binary started again, around the server of go.mod, so nothing has to be installed. A
// relay disconnects the network by forwarding no bytes. That needs no rights, and unlike a closed
// connection, only a side that sends heartbeats notices it.
//
// Two heaps can be compared to a percent only if they hold the same data. So the backend keeps the
// content at one size, clients send a fixed set of queries, and before each measurement the server
// has cached all the responses that it can. The first quarter, in which caches fill, does not
// count.
//
// The race detector would only watch the tests, since the program is another process, so it skips
// them.
//
// # Running
//
// The tests are long: REGISTRY_TESTS=all runs them, with few of each fault. With the tag measure
// there are two more: TestSoak and TestRollingRestart. A soak of 30 s has so few samples that heaps
// may differ by 10%. Two flags of this package ask for more. -soak sets how long TestSoak runs, and
// repeats each fault as often as deploy/README.md reports; -seed repeats the random choices of an
// earlier soak, though not its timing. -v logs the recovery times. -artifacts keeps logs, a heap
// profile of every quiet point, and all data.
//
//	go test -tags measure ./cmd/registry/cluster -run Soak -v -timeout 40m -soak=20m
//	go test -tags measure ./cmd/registry/cluster -run Soak -v -timeout 40m -soak=20m -seed=7 -artifacts -outputdir=/tmp/soak
//
// On Linux, root may mount the small disk that the soak fills; without that right it reports that
// and skips the fault.
//
// Start reading with TestFaults in faults_test.go, or with stage in soak_test.go.
package cluster
