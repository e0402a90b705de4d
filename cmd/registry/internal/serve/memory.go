package serve

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// heapShare of the container's or the machine's memory is for the Go heap, the rest for
	// memory-mapped files, stacks and the kernel's buffers. Near the limit the collector works
	// harder, before the kernel kills the process.
	heapShare = 0.85

	// MinAnswerMemory, in bytes, is enough for any single answer that the contract allows.
	MinAnswerMemory = 32 << 20

	answerShare = 8 // 1/answerShare of the memory limit is for answers
)

// limitMemory limits the Go heap, unless GOMEMLIMIT does. If the memory is not known there is no limit.
func limitMemory() {
	_, _ = memlimit.Set(memlimit.WithRatio(heapShare), memlimit.WithProvider(memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)))
}

// answerMemory returns the default of --answer-memory in bytes, or 0 if there is no memory limit.
func answerMemory() int64 {
	limit := debug.SetMemoryLimit(-1) // a negative number changes nothing
	if limit == math.MaxInt64 {
		return 0
	}
	return max(limit/answerShare, MinAnswerMemory)
}
