package main

import (
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// The garbage collector's settings of serve, the one place where they are chosen. GOGC and
// GOMEMLIMIT in the environment win over them.
const (
	// gcPercent is the head-room over a large live heap (see minHeadroom for a small one). The read model
	// is nearly all of the heap and lives long: Go's 100 would double the memory of every entry, and with
	// 50 a million entries took more than 2 KB each once they had been imported or read for a while.
	gcPercent = 25

	// limitPercent of the container's memory is the Go heap's; the rest is for memory-mapped files, stacks
	// and the kernel's buffers. Near the limit the collector works harder before the kernel kills us.
	limitPercent = 85
)

// tune sets the collector for serving and logs what it chose. root is "/" outside tests.
func tune(getenv func(string) string, root string, log *slog.Logger) {
	gc := "from GOGC"
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		gc = strconv.Itoa(gcPercent)
	}
	if getenv("GOMEMLIMIT") == "" {
		if limit, ok := containerMemory(root); ok {
			debug.SetMemoryLimit(limit / 100 * limitPercent)
		}
	}
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		log.Debug("garbage collector", "gogc", gc, "memory_limit", "none")
		return
	}
	log.Debug("garbage collector", "gogc", gc, "memory_limit", limit)
}

// containerMemory is the memory limit in bytes of the control group this process is in, or of
// one above it; false when there is none. Version 2 and version 1 of cgroups are understood.
func containerMemory(root string) (int64, bool) {
	groups, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	least, found := int64(math.MaxInt64), false
	for row := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(row), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, file := cgroupFile(parts[1])
		if file == "" {
			continue
		}
		if limit, ok := lowestLimit(path.Join(root, base), parts[2], file); ok {
			least, found = min(least, limit), true
		}
	}
	return least, found
}

// cgroupFile says where the limit of a controller's groups is found; empty for other controllers.
func cgroupFile(controllers string) (base, file string) {
	if controllers == "" {
		return "sys/fs/cgroup", "memory.max"
	}
	for c := range strings.SplitSeq(controllers, ",") {
		if c == "memory" {
			return "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
	}
	return "", ""
}

// lowestLimit walks from a group up to the root of its tree: every limit on the way counts. Inside a
// container the group's own path is often not visible, but the root of the tree then is the group.
func lowestLimit(base, group, file string) (int64, bool) {
	least, found := int64(math.MaxInt64), false
	for {
		if limit, ok := readLimit(path.Join(base, group, file)); ok {
			least, found = min(least, limit), true
		}
		if group == "/" || group == "." || group == "" {
			return least, found
		}
		group = path.Dir(group)
	}
}

// readLimit reads one limit. "max", and version 1's number near 2⁶³, mean none.
func readLimit(name string) (int64, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && n > 0 && n < 1<<60
}
