package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// minHeadroom is how much garbage, in bytes, may gather before a collection where the live heap is
	// small, less a tenth of that heap: with gcPercent alone a registry of 100 000 entries was collected more
	// than once a second under load, and spent a quarter of its processor time on it.
	minHeadroom = 512 << 20
	// headroomEvery is how often the live heap is looked at. It grows slowly.
	headroomEvery = 5 * time.Second
)

// keepHeadroom sets the collector's percentage by the live heap until ctx ends: gcPercent for a large
// one, more for one so small that gcPercent of it is less than minHeadroom.
func keepHeadroom(ctx context.Context) {
	tick := time.NewTicker(headroomEvery)
	defer tick.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		metrics.Read(live)
		debug.SetGCPercent(percentFor(live[0].Value.Uint64()))
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
