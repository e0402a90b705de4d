package serve

import (
	"runtime"
	"testing"
)

// TestAddThreads: there are more threads than processors, once, and only where the number of
// threads is that of processors: another one is a limit's.
func TestAddThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	all := runtime.NumCPU()
	for before, want := range map[int]int{all: all + spareThreads, all + spareThreads: all + spareThreads, all + 1: all + 1} {
		runtime.GOMAXPROCS(before)
		if addThreads(); runtime.GOMAXPROCS(0) != want {
			t.Errorf("%d threads became %d, want %d", before, runtime.GOMAXPROCS(0), want)
		}
	}
}
