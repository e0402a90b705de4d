// Package cluster holds tests only. For a minute, they run the built registry as several replicas on
// three JetStream nodes, and inject faults into brokers and network.
//
// # Promises
//
// These promises hold on three nodes, while leaders change, while nodes are killed, paused or started again
// with an empty disk, and while two of three are gone:
//
//   - Replicas at the same sequence send the same bytes under the same ETags, so a balancer may mix them.
//   - No acknowledged event is lost.
//   - Running replicas answer every read, and never from an older state than before.
//   - Afterwards they catch up by themselves, even after a lagging node has shown a shorter stream.
//
// # Why
//
// Brokers and replicas are processes, so SIGKILL and SIGSTOP act as on a real machine. A broker is
// another process of the test binary, which runs the NATS server that go.mod names, so nothing has to be
// installed. A relay simulates a broken network by forwarding no bytes, which needs no privileges. Only a
// side that sends heartbeats notices that.
//
// Builds with the race detector lack these tests, since the program is another process.
//
// # Running
//
// The tests are long, so they need the build tag nightly, and try each fault only a few times. -repeat
// tries each fault as often as deploy/cluster.md reports, and -v logs the recovery times.
//
// Start reading with TestFaults in faults_test.go.
package cluster
