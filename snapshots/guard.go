package snapshots

import (
	"fmt"
	"runtime/debug"
)

// guard runs f, which reads pages that may be damaged, and turns a panic inside bbolt and a fault
// on its memory map into an error. It covers this goroutine only: each goroutine that touches the
// map needs its own.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("unreadable pages: %v", r)
		}
	}()
	return f()
}
