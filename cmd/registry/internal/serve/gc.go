package serve

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"example.org/registry/events/pause"
)

const (
	// gcPercent is the collector's percentage for a large heap. The read model is nearly all of the
	// heap and lives long: Go's 100 would double the memory of every entry, and with 50 an entry
	// took more than 2 KB at a million.
	gcPercent = 25
	// minHeadroom is how much garbage, in bytes, may gather between two collections of a small
	// heap, less a tenth of that heap. With gcPercent alone a registry of 100 000 entries was
	// collected more than once a second under load, which took a quarter of its processor time.
	minHeadroom = 512 << 20
	// fillingRoom is how much garbage, in bytes, may gather while the model is being filled, when the
	// heap grows and most collections find little. A smaller heap may double; of a large one,
	// fillingPercent may gather. With fillingPercent alone an import of a million took a tenth more
	// processor time, and 3.5 GB at its peak instead of 4.4.
	fillingRoom    = 2 << 30
	fillingPercent = 50
	// headroomEvery is how long a tick is: how often the live heap is read. At a start the heap may
	// double in that time.
	headroomEvery = 100 * time.Millisecond
	// calmTicks is how many ticks lie between two looks whether memory can be given back: 2 s.
	calmTicks = 20
	// calmLooks is how many times the time between two looks the spare memory would last where it is
	// calm: a minute.
	calmLooks = 32
	// calmSpare is how many bytes, beside a sixteenth of the live heap, are worth a collection.
	calmSpare = 32 << 20
	// restLook is the look at which the broker's blocks and the copies of tree nodes that an import
	// leaves are garbage: the broker keeps a block in memory for 10 s after its last use.
	restLook = 8
	// limitPercent of the container's or the machine's memory is for the Go heap, the rest for
	// memory-mapped files, stacks and the kernel's buffers. Near the limit the collector works harder, before the kernel
	// kills the process.
	limitPercent = 85
)

// GC says which settings of the garbage collector serve chooses. The zero value chooses none. GOGC
// and GOMEMLIMIT in the environment win over it.
type GC struct {
	Percent bool // the percentage, by the size of the live heap
	Limit   bool // the memory limit, by the container's (cgroups version 1 and 2) and the machine's memory
}

// tune sets the collector and logs the settings.
func (gc GC) tune(log *slog.Logger) {
	percent := "from GOGC"
	if gc.Percent {
		percent = "by the live heap"
	}
	if gc.Limit {
		memory := uint64(math.MaxInt64)
		for _, of := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
			if n, err := of(); err == nil && n > 0 { // an error: no limit, or not known
				memory = min(memory, n)
			}
		}
		if memory < math.MaxInt64 {
			debug.SetMemoryLimit(int64(memory) / 100 * limitPercent)
		}
	}
	if limit := debug.SetMemoryLimit(-1); limit == math.MaxInt64 {
		log.Debug("garbage collector", "gogc", percent, "memory_limit", "none")
	} else {
		log.Debug("garbage collector", "gogc", percent, "memory_limit", limit)
	}
}

// keep sets the percentage by the live heap until ctx ends, and gives memory back to the system:
// when a model has been filled, and when it is calm, as after a snapshot or the making of an index.
// filling reports whether a model is being loaded, or many events are waiting for it. loading returns
// the size in bytes of the store that is being loaded, or 0.
func (gc GC) keep(ctx context.Context, filling func() bool, loading func() uint64) {
	if !gc.Percent {
		return
	}
	var t tuner
	set := 0
	for {
		percent, free := t.tick(readHeap(), filling(), loading())
		if free {
			// Readers wait some 3 ms more meanwhile, up to 27 with as many threads as processors
			// (threads.go), for the collections: giving back itself costs them nothing. There are two,
			// since what lies in a sync.Pool outlives the first, as do 120 MB of the broker's blocks
			// after an import of 100 000.
			runtime.GC()
			debug.FreeOSMemory()
			t.given = readHeap()
		}
		if percent != set {
			set = percent
			debug.SetGCPercent(percent)
		}
		if !pause.For(ctx, headroomEvery) {
			return
		}
	}
}

// tuner decides what the collector is to do. Its zero value has seen nothing.
type tuner struct {
	ticks  int
	since  int  // ticks since a model was last being filled
	before heap // at the last look
	given  heap // after memory was last given back
}

// tick returns the percentage that now has to be set, and, at every calmTicks-th call, whether
// memory is to be given back. An import has moments without a backlog: it has ended after calmTicks
// without one.
func (t *tuner) tick(now heap, filling bool, loading uint64) (percent int, free bool) {
	t.ticks++
	t.since++
	if filling {
		t.since = 0
	}
	if t.ticks%calmTicks == 0 {
		free = loading == 0 && now.shouldFree(t.before, t.given, t.since/calmTicks)
		t.before = now
	}
	return percentFor(now.live, loading, t.since < calmTicks), free
}

// percentFor is the collector's percentage for a live heap of so many bytes: gcPercent for a large
// one, more where gcPercent of the heap is less than minHeadroom, and more while the model is being
// filled. While a store is being loaded, of which loading is the size in bytes, there is room for as
// much: nearly all that is allocated stays, and to find that out took a seventh of the processor time
// of a start.
func percentFor(live, loading uint64, filling bool) int {
	live = max(live, 8<<20) // before the first collection nothing is known to live
	room := max(loading, minHeadroom-min(live/10, minHeadroom))
	least := gcPercent
	if filling {
		least, room = fillingPercent, max(room, min(live, fillingRoom))
	}
	return max(least, int(100*room/live))
}

// heap is what the runtime says of the memory that it has from the system, in bytes.
type heap struct {
	live      uint64 // what the last collection found: nearly all of it the read model
	held      uint64 // for objects, live, dead or to come; given back memory is not
	allocated uint64 // since the process began
}

func readHeap() heap {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(samples)
	bytes := func(i int) uint64 { return samples[i].Value.Uint64() }
	return heap{live: bytes(0), allocated: bytes(1), held: bytes(2) + bytes(3) + bytes(4)}
}

// spare is what holds nothing that lived at the last collection, less what could not be given back
// when that was last tried.
func (h heap) spare(given heap) uint64 {
	spare := h.held - min(h.live, h.held)
	return spare - min(given.held-min(given.live, given.held), spare)
}

// shouldFree reports whether the spare memory is to be given back now. idle is the number of looks
// since a model was last being filled: at the second one the import or the start has ended, and is not
// just waiting for more. At restLook what it leaves is given back, however little that seems: what has
// died since the last collection is not known to be spare.
func (h heap) shouldFree(before, given heap, idle int) bool {
	return idle == 2 && h.worth(given) || idle == restLook || idle > 0 && h.tooMuch(given) || h.calm(before, given)
}

// worth reports whether what is to spare is worth a collection.
func (h heap) worth(given heap) bool { return h.spare(given) > calmSpare+h.live/16 }

// calm reports whether so little has been allocated since before that what is to spare would not be
// used for a minute.
func (h heap) calm(before, given heap) bool {
	return h.worth(given) && h.allocated-before.allocated < h.spare(given)/calmLooks
}

// tooMuch reports whether there is twice as much to spare as the collector uses when nothing is
// being filled: an import has ended, and an index is still being made.
func (h heap) tooMuch(given heap) bool {
	return h.spare(given) > 2*h.live/100*uint64(percentFor(h.live, 0, false))
}
