// Package fault turns failures that would end the process into errors: a panic, and a memory fault
// in a mapped file, as when a disk fails to read a page or the file is shorter than its mapping.
package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Err is the error that errors.Is finds in the error of a panic or fault.
var Err = errors.New("fault")

// Catch runs f and returns its error. A panic or fault becomes an error that names it and matches
// Err. Catch does not see faults of other goroutines.
func Catch(f func() error) (err error) {
	before := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(before)
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", Err, v)
		}
	}()
	return f()
}
