package serve

import (
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// TestPercentFor: a small heap is given the least headroom there is, a large one gcPercent.
func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 6390, 64 << 20: 790, 128 << 20: 390, 512 << 20: 90, 1 << 30: 50, 1 << 34: 50} {
		if got := percentFor(live); got != want {
			t.Errorf("%d bytes live: %d%%, want %d%%", live, got, want)
		}
	}
}

// TestTune: without a container's limit the collector knows that of the machine.
func TestTune(t *testing.T) {
	machine, err := memlimit.FromSystem()
	if err != nil {
		t.Skip("the size of the machine's memory is not known: ", err)
	}
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	GC{Limit: true}.tune(discard())
	if limit := debug.SetMemoryLimit(-1); limit > int64(machine)*limitPercent/100 {
		t.Errorf("the limit is %d on a machine of %d bytes", limit, machine)
	}
}
