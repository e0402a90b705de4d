// Package failpoint has places in the program at which a test can make it fail: die as by kill -9, get
// an error, or hang. They are named where they stand: failpoint.Hit("store/in-transaction").
//
// Without the build tag faultinject Hit is an empty function that the compiler removes, and nothing can
// be made to fail. With it the environment says what is to happen and at which hit of the point,
// counted from 1:
//
//	REGISTRY_FAILPOINTS=store/in-transaction=kill:2,projector/copy=error:1
//
// kill ends the process with SIGKILL; error makes that one hit return ErrInjected; block never returns.
//
// Every point is killed at in cmd/registry's failpoint tests; a new one that is not in their table fails
// them. Any room may import this package, which imports none. It is ours, small, and not gofail or
// pingcap's failpoint, because those rewrite the sources.
package failpoint
