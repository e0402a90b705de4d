// Package fault turns failures that would end the process into errors: a panic, and a memory fault
// in a mapped file, as when a disk fails to read a page or the file is shorter than its mapping.
package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Err is matched by the errors of panics and faults.
var Err = errors.New("fault")

// Catch runs f and returns its error. A panic or fault becomes an error that names it and matches
// Err. Catch does not see faults of other goroutines.
func Catch(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", Err, v)
		}
	}()
	return f()
}
