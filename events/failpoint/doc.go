// Package failpoint marks places in the program at which a test can make it fail: die as by kill
// -9, get an error, or hang. Each call names its place: failpoint.Hit("store/in-transaction").
//
// Without the build tag faultinject, Hit is an empty function that the compiler removes, and
// nothing can be made to fail. With it, the environment selects the failures, and at which hit of
// the point, counted from 1:
//
//	REGISTRY_FAILPOINTS=store/in-transaction=kill:2,projector/copy=error:1
//
// kill ends the process with SIGKILL; error makes that one hit return ErrInjected; block never
// returns.
//
// The tests of cmd/registry kill the program at every point; a new point that is not in their table
// fails them. Any package may import this one, which imports none.
//
// # Why
//
// These 60 lines replace gofail and pingcap's failpoint, which rewrite the sources before each
// build. Without failpoints, tests could only reach moments that are visible from outside; most of
// the faults lie between those.
package failpoint
