package serve

import (
	"runtime/debug"
	"slices"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// TestPercentFor: a small heap is given the least head-room there is, a large one gcPercent. While it
// grows it may double, or gather fillingPercent where it is large.
func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64][2]int{0: {6390, 6390}, 64 << 20: {790, 790}, 128 << 20: {390, 390}, 1 << 30: {40, 100}, 1 << 31: {25, 100}, 1 << 34: {25, 50}} {
		if calm, filling := percentFor(live, 0, false), percentFor(live, 0, true); [...]int{calm, filling} != want {
			t.Errorf("%d bytes live: %d%%, filling %d%%, want %d%%", live, calm, filling, want)
		}
	}
}

// TestPercentForLoading: a store of a gigabyte is loaded without a collection, on whatever heap.
func TestPercentForLoading(t *testing.T) {
	const loading = 1 << 30
	for _, live := range []uint64{0, 64 << 20, 1 << 30} {
		live = max(live, 8<<20)
		if room := live / 100 * uint64(percentFor(live, loading, true)); room < loading*95/100 || room > loading*105/100 {
			t.Errorf("%d bytes live: room for %d", live, room)
		}
	}
	if got := percentFor(4<<30, loading, true); got != fillingPercent {
		t.Errorf("%d%% of a heap that is larger than the store", got)
	}
}

// TestCalm: memory is given back when there is much to spare and little is allocated, and what
// could not be given back is not tried again.
func TestCalm(t *testing.T) {
	const mb = 1 << 20
	before := heap{live: 160 * mb, held: 800 * mb, allocated: 5000 * mb}
	now := func(held, allocated uint64) heap { return heap{160 * mb, held * mb, before.allocated + allocated*mb} }
	for name, c := range map[string]struct {
		now   heap
		given heap
		want  bool
	}{
		"an import has ended":       {now(800, 1), heap{}, true},
		"readers ask a lot":         {now(800, 100), heap{}, false},
		"there is little to spare":  {now(200, 0), heap{}, false},
		"fragments cannot be given": {now(300, 0), now(290, 0), false},
		"more since":                {now(400, 0), now(290, 0), true},
	} {
		if got := c.now.calm(before, c.given); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for held, want := range map[uint64]bool{2400 * mb: false, 4000 * mb: true} {
		if got := (heap{live: 1600 * mb, held: held}).tooMuch(heap{}); got != want {
			t.Errorf("too much of %d: %v", held, got)
		}
	}
}

// TestShouldFree: the garbage of an import is given back when that has ended, whatever is allocated
// then, and once more at restLook, even if nothing is known to be spare; not while it goes on.
func TestShouldFree(t *testing.T) {
	const mb = 1 << 20
	now := heap{live: 160 * mb, held: 600 * mb, allocated: 5000 * mb}
	for idle, want := range []bool{0: false, false, true, false, restLook: true, false} {
		if got := now.shouldFree(heap{}, heap{}, idle); got != want {
			t.Errorf("%d looks after filling: %v", idle, got)
		}
	}
	if all := (heap{live: 160 * mb, held: 160 * mb, allocated: 5000 * mb}); all.shouldFree(heap{}, heap{}, 2) || !all.shouldFree(heap{}, heap{}, restLook) {
		t.Error("nothing to spare: given back at the wrong looks")
	}
}

// TestTuner: an import in which now and then nothing waits counts as one, and its garbage is given
// back at the second look after the last moment of it and at restLook.
func TestTuner(t *testing.T) {
	const live = 4 << 30
	var u tuner
	at := func(filling bool) (percent int, free bool) {
		percent, free = u.tick(heap{live: live, held: live + calmSpare + live/8, allocated: uint64(u.ticks) << 30}, filling, 0)
		if free {
			u.given = heap{live: live, held: live}
		}
		return percent, free
	}
	for n := range 10 * calmTicks {
		if percent, free := at(n%calmTicks == 0); percent != fillingPercent || free {
			t.Fatalf("tick %d of an import: %d%%, given back: %v", n, percent, free)
		}
	}
	var percents, freed []int
	for n := range 10 * calmTicks {
		percent, free := at(false)
		if percents = append(percents, percent); free {
			freed = append(freed, n)
		}
	}
	if slices.Index(percents, gcPercent) > calmTicks || percents[len(percents)-1] != gcPercent {
		t.Errorf("after an import: %v", percents)
	}
	if len(freed) != 2 || freed[0] < 2*calmTicks-1 || freed[0] > 3*calmTicks || freed[1]-freed[0] != (restLook-2)*calmTicks {
		t.Errorf("given back at %v", freed)
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
