//go:build unix

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// maxFailures bounds what is printed; all are counted.
const maxFailures = 40

// report is what the soak has to say. Any goroutine may use it.
type report struct {
	mu       sync.Mutex
	out      io.Writer
	failures int
	times    map[string]int // that something was done
}

func (r *report) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format+"\n", args...)
}

// fail prints a line for what must not have happened.
func (r *report) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures++; r.failures <= maxFailures {
		fmt.Fprintf(r.out, "FAILED: "+format+"\n", args...)
	}
}

func (r *report) failed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures
}

// count remembers that something was done.
func (r *report) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times[what]++
}

// counted is how often something was done.
func (r *report) counted(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[what]
}

// done is everything that was counted, in one line.
func (r *report) done() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(r.times)) {
		all = append(all, fmt.Sprintf("%s %d", what, r.times[what]))
	}
	return strings.Join(all, ", ")
}
