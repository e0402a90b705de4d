// Package fault turns failures that would end the process into errors: a panic, and a memory fault in a mapped
// file. A mapped file faults if the disk cannot read a page, or if the file is shorter than its mapping.
package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Err is in each error that Catch makes of a panic or fault (errors.Is).
var Err = errors.New("fault")

// Catch runs f and returns its error. A panic or fault in f's goroutine becomes an error that names it and
// matches Err.
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
