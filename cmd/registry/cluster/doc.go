// Package cluster has no code of the program. Its tests run the built registry as several replicas
// on real brokers, and inject faults into brokers and network, for a minute, on three
// JetStream nodes.
//
// # Promises
//
// On three nodes, while leaders change, while nodes are killed, paused or started again with an empty
// disk, and while two of three are gone:
//
//   - Replicas at one sequence send the same bytes under the same ETags, so a balancer may mix them.
//   - No acknowledged event is lost.
//   - Running replicas answer every read, and never from an older state than before.
//   - Afterwards they catch up by themselves, even after a lagging node has shown a shorter stream.
//
// # Why
//
// Brokers and replicas are processes, so SIGKILL and SIGSTOP act as on a real machine. A broker is
// the test binary started again, around the server of go.mod, so nothing has to be installed. A
// relay disconnects the network by forwarding no bytes. That needs no rights, and unlike a closed
// connection, only a side that sends heartbeats notices it.
//
// The race detector would only watch the tests, since the program is another process, so it skips
// them.
//
// # Running
//
// The tests are long: the build tag nightly runs them, with few of each fault. -repeat tries each fault
// as often as deploy/cluster.md reports, and -v logs the recovery times.
//
// Start reading with TestFaults in faults_test.go.
package cluster
