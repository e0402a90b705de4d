//go:build unix

// Command soak runs the built registry for long, does to it what happens to servers, and looks for what only time
// brings out: lost events, replicas that drift apart, goroutines, descriptors and memory that are never given back.
//
//	go run ./cmd/soak                       20 minutes, up to 200 events a second
//	go run ./cmd/soak --for 2h --seed 7     longer, with the draws of an earlier run
//	go run ./cmd/soak --help
//
// # What takes part
//
//   - A broker, which is killed, stopped for seconds and restarted, and a relay before each replica, which makes the
//     network go away, flap and swallow everything (faults.go).
//   - The living replica, never killed. It is stopped for seconds, its disk gets full, it is rebuilt, makes
//     snapshots and exports, some of them cut short (operator.go), answers readers all the time (readers.go), and gets
//     requests that nobody should make (hostile.go).
//   - The unlucky replica, killed at random moments and started again, some times with a bit of its store changed
//     or with none, so that it starts from a snapshot (unlucky.go).
//   - A backend that publishes until it is acknowledged, poison events between the others (backend.go, poison.go), and
//     keeps in maps what must be shown for it.
//
// # What is held against it
//
// Through everything the living replica gives every reader the answer that the contract says, never from an
// older state than before, and neither replica panics. At every quiet point, with whole broker, network and disk:
//
//   - both replicas get to the end, complain of nothing, and have one digest, which "registry verify" confirms;
//   - the lists, in two orders, and some checks and donations are what was acknowledged, entry by entry;
//   - a rebuild works.
//
// And in the end, by the least of the second quarter and of the last: goroutines and descriptors have grown by 2 at most, the
// live heap after a collection by 2 %, both of a read model that has grown old and of a fresh one.
//
// # Why this shape
//
// Heaps can be compared to a percent only where they hold the same. So the content is as much all the time (content.go),
// readers ask from a fixed set of questions, and before each measurement all of these have been asked in every coding:
// what can be remembered is. The first quarter, in which what fills up does so, is not looked at.
//
// It needs Go, the module's checkout and Unix, for signals; on Linux, root may mount the small disk that is filled: without
// that it says so and leaves it out. It takes about half a processor. The exit status is 0 when nothing failed, 1 with a line for
// each failure, 2 for a usage error. Everything is in one temporary directory, removed at the end unless --keep is given,
// which leaves the logs, a heap profile of every quiet point, and the disk, mounted. Draws come from the seed; moments do not.
//
// Start reading with stage in soak.go.
package main
