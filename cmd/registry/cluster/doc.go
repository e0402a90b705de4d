// Package cluster has no code of the program. Its tests run the built registry as several replicas
// on real brokers, and do to brokers, network, disks and replicas what happens to them: for a
// minute on three JetStream nodes, and for long on one.
//
// # Promises
//
// On three nodes, through changes of leaders, nodes that are killed, stopped for a while or come
// back with an empty disk, and with two of three gone:
//
//   - Replicas at one sequence answer the same bytes under the same ETags, so a balancer may mix
//     them.
//   - No acknowledged event is lost.
//   - Running replicas answer every read, and never from an older state than before.
//   - Afterwards they follow again by themselves, also after a lagging node has shown a shorter
//     stream.
//
// TestSoak adds time. Its broker is the embedded one. The living replica is never killed: it is
// stopped for seconds, its disk gets full, it is rebuilt, makes snapshots and exports, some of them
// cut short, answers readers all the time, and gets requests that nobody should make. The unlucky
// replica is killed at random moments and started again, sometimes with a bit of its store flipped
// or with no store. Poison events come between the others. No read may fail, and neither replica
// may panic. At every quiet point, with broker, network and disk whole:
//
//   - both replicas get to the stream's end, report no error, and have one digest, which "registry
//     verify" confirms;
//   - lists in two orders, and some checks and donations, are what was acknowledged, entry by
//     entry;
//   - a rebuild works.
//
// At the end it compares the least of the second quarter with the least of the last. Goroutines and
// descriptors may have grown by 2, the live heap after a collection by 2%, both of a read model
// that has grown old and of a fresh one.
//
// # Why
//
// Brokers and replicas are processes, so that SIGKILL and SIGSTOP are what they are on a machine. A
// broker is the test binary started again, around the server of go.mod, so nothing has to be
// installed. A relay cuts the network by passing no more bytes on. That needs no rights, and unlike
// a closed connection only those notice it who ask for signs of life.
//
// Two heaps can be compared to a percent only if they hold the same. So the backend keeps the
// content at one size, readers ask a fixed set of questions, and before each measurement the server
// has cached all it can of the answers. The first quarter, in which caches fill, is not judged.
//
// The race detector would watch only the tests, since the program is another process. They are left
// out with it.
//
// # Running
//
// The tests are long: REGISTRY_TESTS=all runs them, with few of each fault and 30 s of soak, whose
// few samples may differ by 10% of heap. Two flags of this package ask for more. -soak sets how
// long TestSoak runs, and repeats each fault as often as deploy/README.md reports; -seed draws
// again what an earlier soak drew, though not at the same moments. -v logs the times to heal.
// -artifacts keeps logs, a heap profile of every quiet point, and all data.
//
//	go test ./cmd/registry/cluster -run Soak -v -timeout 40m -soak=20m
//	go test ./cmd/registry/cluster -run Soak -v -timeout 40m -soak=20m -seed=7 -artifacts -outputdir=/tmp/soak
//
// On Linux, root may mount the small disk that the soak fills; without that right it says so and
// leaves it out.
//
// Start reading with TestFaults in faults_test.go, or with stage in soak_test.go.
package cluster
