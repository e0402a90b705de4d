package serve

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// heapShare of the container's or the machine's memory is for the Go heap, the rest for
	// memory-mapped files, stacks and the kernel's buffers. Near this limit the garbage collector works
	// harder, so that the kernel need not kill the process.
	heapShare = 0.85

	// MinAnswerMemory, in bytes, is enough for any single answer that the contract allows.
	MinAnswerMemory = 32 << 20
)

// limitMemory limits the Go heap, unless GOMEMLIMIT does. If the memory is not known there is no limit.
func limitMemory() {
	_, _ = memlimit.Set(memlimit.WithRatio(heapShare), memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
}

// answerMemory returns the default of --answer-memory, an eighth of the memory limit, or 0 without a limit.
func answerMemory() int64 {
	limit := debug.SetMemoryLimit(-1) // a negative number changes nothing
	if limit == math.MaxInt64 {
		return 0
	}
	return max(limit/8, MinAnswerMemory)
}
