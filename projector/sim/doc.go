// Package sim has no code of the program. Its tests think up bad luck: they run the projector, its
// store and the bucket of snapshots, all unchanged, against a real broker, over a connection that
// loses, doubles, delays and forges messages, and judge what readers would have been shown.
//
// Everything runs in a bubble of testing/synctest, on a clock that jumps to the next event: minutes
// of backoff pass in microseconds. The faults are drawn from a seed; only the order of goroutines
// is not, so a seed that found something finds it again nearly always.
//
//	go test ./projector/sim                    20 seeds, those that found something, and the scenarios
//	go test ./projector/sim -sim 10m           new seeds for ten minutes
//	go test ./projector/sim -run TestSimulation/seed=7 -sim.log   what happened in one seed
//
// # Rules
//
// The judge knows every message that was acknowledged, and keeps the last valid one of each subject
// (twin_test.go). At any moment:
//
//	R1   the sequence of the view never goes back while a server lives
//	R2   the saved checkpoint never goes back in a data directory
//	R3   a server that has caught up from nothing has every subject at least as new as at its start
//	R4   a server does not freeze on its own stream (streams that are put back: position_test.go, cmd/registry/nights)
//	R5   no checkpoint is saved before every rejected event up to it has been copied
//	R8   AsOf is never after the time of an event that is not applied
//	R9   Run ends when it is told to, and without an error
//	R10  no goroutine is left behind (the bubble sees to that)
//	R11  no server shows an entry after it has seen the delisting, whatever became of the stream
//	R12  a saved state that was complete is served when the stream cannot be followed
//	R13  a snapshot that was put can be restored, and is what the store held; nothing that is not
//	     older erases it
//	R14  nothing but what lies before a tombstone is erased
//	R15  the server publishes nothing but the true state of a subject after a broken message
//
// And within two minutes of the end of all faults (settle):
//
//	R6   the server is caught up and at the stream's end, has saved that, reports no error but the
//	     subjects that the stream has lost, and its records are those of the twin
//	R7   what was saved is what is loaded: no store is ever set aside as damaged
//
// A subject whose last valid event the stream has lost by a purge, or because rejected events
// displaced it, may be as it was, or gone: it depends on when its messages came.
//
// # The measure
//
// A judge that finds nothing may be blind: .ci/mutations.txt has the mutations that a
// seed notices. Each run also counts how often each fault came about. One that never did fails the
// run.
//
// # Limits
//
// A bubble has no sockets, so the broker has no cluster: the wire gives the answers of a node that
// lags or knows no leader. Mutexes that are held over a wait stop a bubble's clock, so the wire
// never makes a writer wait.
package sim
