// Package cluster has no code of the program: its tests run the built registry as several replicas
// on three JetStream nodes, and do to the nodes, the network and the replicas what happens to them.
//
// # What is held against it
//
//   - Replicas at one sequence answer the same bytes under the same ETags, so a balancer may mix them.
//   - No acknowledged event is lost: not by leaders that change, nodes that are killed, stopped for a
//     while, or come back with nothing, nor when two of three are gone.
//   - Replicas that are up answer every read meanwhile, and never from an older state than before.
//   - When it is over they follow again by themselves, also where a node that was left behind showed a
//     shorter stream (DESIGN.md, promise 3, and "a stream that only looked shorter thaws").
//
// # Why this shape
//
// Nodes and replicas are processes, so that SIGKILL and SIGSTOP are what they are on a machine. A node is the
// test binary itself, started again, around the server of go.mod: nothing has to be installed, and the version is
// the one that is embedded. The network is cut by a relay that stops passing bytes on, which
// needs no rights; unlike a closed connection it is noticed by nobody but those who ask for signs of life.
//
// A writer and one reader a replica work through every fault; what they count is looked at in the end.
//
// The counts are small, for every commit. REGISTRY_CLUSTER=full does 50 changes of leaders, 20 kills and so on, in
// some ten minutes. The times to heal are logged: go test -v. The race detector would watch
// the tests alone, since the program is another process: they are left out with it.
package cluster
