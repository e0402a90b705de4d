package serve

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// limitPercent of the container's or the machine's memory is for the Go heap, the rest for
	// memory-mapped files, stacks and the kernel's buffers. Near the limit the collector works
	// harder, before the kernel kills the process.
	limitPercent = 85

	// MinAnswerMemory is enough for every answer that the contract allows, one at a time.
	MinAnswerMemory = 16 << 20

	answerShare = 8 // 1/answerShare of the memory is for answers
)

// setMemoryLimit limits the Go heap by the memory of the container or the machine, if that is known.
func setMemoryLimit() {
	if memory := availableMemory(); memory < math.MaxInt64 {
		debug.SetMemoryLimit(memory / 100 * limitPercent)
	}
}

// availableMemory returns the memory of the container or, if that has no limit, of the machine. It
// returns math.MaxInt64 if neither is known.
func availableMemory() int64 {
	memory := uint64(math.MaxInt64)
	for _, provider := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if n, err := provider(); err == nil && n > 0 { // an error: no limit, or unknown
			memory = min(memory, n)
		}
	}
	return int64(memory)
}

// answerMemory returns the default of --answer-memory, or 0 if the memory is not known. GOMEMLIMIT may
// be lower than the memory there is.
func answerMemory() int64 {
	memory := min(availableMemory(), debug.SetMemoryLimit(-1))
	if memory == math.MaxInt64 {
		return 0
	}
	return max(memory/answerShare, MinAnswerMemory)
}
