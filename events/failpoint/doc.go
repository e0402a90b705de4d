// Package failpoint marks places in the program at which a test can make it fail: die as by kill
// -9, get an error, or hang. Each is named where it stands: failpoint.Hit("store/in-transaction").
//
// Without the build tag faultinject Hit is an empty function that the compiler removes, and nothing
// can be made to fail. With it the environment says what happens, and at which hit of the point,
// counted from 1:
//
//	REGISTRY_FAILPOINTS=store/in-transaction=kill:2,projector/copy=error:1
//
// kill ends the process with SIGKILL; error makes that one hit return ErrInjected; block never
// returns.
//
// The tests of cmd/registry kill the program at every point; a new point that is not in their table
// fails them. Any room may import this package, which imports none.
//
// # Why
//
// These 60 lines stand in for gofail and pingcap's failpoint because those rewrite the sources
// before each build. Without them only the moments that a test can reach from outside would be
// tried; most of the faults are between two of these.
package failpoint
