package serve

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"example.org/registry/events/pause"
)

const (
	// gcPercent is the collector's percentage for a large live heap. The read model is nearly all of
	// the heap and lives long, so Go's 100 would double the memory of every entry.
	gcPercent = 50
	// minHeadroom is how much garbage, in bytes, may gather between two collections of a small
	// heap, minus a tenth of that heap. With gcPercent alone a registry of 100,000 entries was
	// collected more than once a second under load, which took a quarter of its CPU time.
	minHeadroom = 512 << 20
	// headroomEvery is how often the live heap is read. At a start the heap may double in that time.
	headroomEvery = 100 * time.Millisecond
	// limitPercent of the container's or the machine's memory is for the Go heap, the rest for
	// memory-mapped files, stacks and the kernel's buffers. Near the limit the collector works
	// harder, before the kernel kills the process.
	limitPercent = 85
)

// GC selects the settings of the garbage collector that serve makes. The zero value makes none.
// GOGC and GOMEMLIMIT in the environment take precedence.
type GC struct {
	Percent bool // set the percentage, by the size of the live heap
	Limit   bool // set the memory limit, by the memory of the container (cgroups version 1 and 2) and of the machine
}

// availableMemory returns the memory of the container or, if that has no limit, of the machine;
// math.MaxInt64 if neither is known.
func availableMemory() int64 {
	memory := uint64(math.MaxInt64)
	for _, of := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := of(); err == nil && n > 0 { // an error: no limit, or unknown
			memory = min(memory, n)
		}
	}
	return int64(memory)
}

const (
	// MinAnswerMemory is enough for every answer that the contract allows, one at a time.
	MinAnswerMemory = 16 << 20

	answerShare = 8 // 1/answerShare of the memory is for answers
)

// answerMemory returns the default of --answer-memory; 0 if the memory is not known. GOMEMLIMIT may
// be lower than the memory there is.
func answerMemory() int64 {
	memory := min(availableMemory(), debug.SetMemoryLimit(-1))
	if memory == math.MaxInt64 {
		return 0
	}
	return max(memory/answerShare, MinAnswerMemory)
}

// tune sets the memory limit and logs the settings.
func (gc GC) tune(log *slog.Logger) {
	percent := "from GOGC"
	if gc.Percent {
		percent = "by the live heap"
	}
	if memory := availableMemory(); gc.Limit && memory < math.MaxInt64 {
		debug.SetMemoryLimit(memory / 100 * limitPercent)
	}
	if limit := debug.SetMemoryLimit(-1); limit == math.MaxInt64 {
		log.Debug("garbage collector", "gogc", percent, "memory_limit", "none")
	} else {
		log.Debug("garbage collector", "gogc", percent, "memory_limit", limit)
	}
}

// keepHeadroom sets the percentage by the live heap until ctx ends.
func (gc GC) keepHeadroom(ctx context.Context) {
	if !gc.Percent {
		return
	}
	for set := 0; ; {
		if percent := percentFor(liveHeap()); percent != set {
			set = percent
			debug.SetGCPercent(percent)
		}
		if !pause.For(ctx, headroomEvery) {
			return
		}
	}
}

// percentFor returns the collector's percentage for a live heap of live bytes: gcPercent, or more
// if that is less than minHeadroom.
func percentFor(live uint64) int {
	live = max(live, 8<<20) // unknown before the first collection
	room := minHeadroom - min(live/10, minHeadroom)
	return max(gcPercent, int(100*room/live))
}

// liveHeap returns the bytes that the last collection found alive, nearly all of them the read
// model's.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
