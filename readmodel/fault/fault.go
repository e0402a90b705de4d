// Package fault turns what would end the process into an error: a panic, and a fault of memory that
// is mapped from a file, as when a disk fails to give a page back or a file is shorter than it
// says.
package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Err is what the errors of a panic and of a fault match.
var Err = errors.New("fault")

// Catch runs f and returns its error, or one that names the panic or the fault and matches Err. It sees nothing of
// other goroutines.
func Catch(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", Err, v)
		}
	}()
	return f()
}
