package serve

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
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
	// headroomEvery is how often the live heap is read. It grows slowly.
	headroomEvery = 5 * time.Second
	// limitPercent of the container's memory is for the Go heap, the rest for memory-mapped files,
	// stacks and the kernel's buffers. Near the limit the collector works harder, before the kernel
	// kills the process.
	limitPercent = 85
)

// GC says which settings of the garbage collector serve chooses. The zero value chooses none. GOGC
// and GOMEMLIMIT in the environment win over it.
type GC struct {
	Percent bool // the percentage, by the size of the live heap
	Limit   bool // the memory limit, by that of the container (cgroups version 1 and 2)
}

// tune sets the collector and logs the settings.
func (gc GC) tune(log *slog.Logger) {
	percent := "from GOGC"
	if gc.Percent {
		debug.SetGCPercent(gcPercent)
		percent = strconv.Itoa(gcPercent)
	}
	if gc.Limit {
		if limit, err := memlimit.FromCgroup(); err == nil && limit > 0 && limit < math.MaxInt64 { // an error: there is no limit
			debug.SetMemoryLimit(int64(limit) / 100 * limitPercent)
		}
	}
	if limit := debug.SetMemoryLimit(-1); limit == math.MaxInt64 {
		log.Debug("garbage collector", "gogc", percent, "memory_limit", "none")
	} else {
		log.Debug("garbage collector", "gogc", percent, "memory_limit", limit)
	}
}

// afterLoading returns memory to the system once the model has caught up: what loading, a replay or
// a rebuild left behind, up to a quarter of the heap. It costs one collection.
func (gc GC) afterLoading(r *running) {
	if gc.Percent {
		r.onceCaughtUp(func(context.Context) { debug.FreeOSMemory() })
	}
}

// keepHeadroom sets the percentage by the live heap until ctx ends: gcPercent for a large one, more
// where gcPercent of the heap is less than minHeadroom.
func (gc GC) keepHeadroom(ctx context.Context) {
	if !gc.Percent {
		return
	}
	tick := time.NewTicker(headroomEvery)
	defer tick.Stop()
	for {
		debug.SetGCPercent(percentFor(liveHeap()))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// percentFor is the collector's percentage for a live heap of so many bytes.
func percentFor(live uint64) int {
	live = max(live, 8<<20) // before the first collection nothing is known to live
	room := minHeadroom - min(live/10, minHeadroom)
	return max(gcPercent, int(100*room/live))
}

// liveHeap is what the last collection found to live, in bytes: nearly all of it the read model.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
