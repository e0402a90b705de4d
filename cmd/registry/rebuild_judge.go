package main

import (
	"fmt"
	"runtime/debug"
	"runtime/metrics"

	"example.org/registry/events"
	"example.org/registry/httpapi"
)

// permitted says what stands in the way before anything is done.
func (b *rebuilding) permitted() error {
	p := b.old.projector.Progress()
	switch {
	case !p.Connected:
		return httpapi.Unavailable("the broker cannot be reached; a rebuild reads the stream")
	case p.Frozen && !b.options.AcceptStream:
		return httpapi.Refused("frozen: " + p.LastError)
	case !p.CaughtUp && !p.Frozen:
		return httpapi.Unavailable("the read model has not caught up with the stream yet")
	}
	return b.enoughMemory()
}

// judge compares the two models as readers see them (API contract, registry rebuild).
func (b *rebuilding) judge() error {
	was, is := b.old.model.View(), b.fresh.model.View()
	all := 0
	for _, list := range events.Lists() {
		before, after := was.Entries(list), is.Entries(list)
		all += after
		if lost := before - after; lost*10 > before && !b.options.Yes {
			return httpapi.Refused(fmt.Sprintf("%s would go from %d entries to %d; publish what is missing (registry export, registry publish), "+
				"or repeat with --yes if that is right", list, before, after))
		}
	}
	if least := b.server.flags.MinEntries; all < least {
		return httpapi.Refused(fmt.Sprintf("%d entries in all, fewer than the %d of --min-entries", all, least))
	}
	return nil
}

// enoughMemory compares the memory limit, where there is one, with what two models take. The heap is
// nearly all the model's.
func (b *rebuilding) enoughMemory() error {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	need, limit := 2*int64(sample[0].Value.Uint64()), debug.SetMemoryLimit(-1)
	b.server.log.Info("rebuild begun; it takes as much memory again as the read model", "bytes", need/2, "acceptStream", b.options.AcceptStream)
	if need < limit || b.options.Yes {
		return nil
	}
	return httpapi.Refused(fmt.Sprintf("two read models take about %d MiB, and the memory limit is %d MiB; "+
		"give the server more, or repeat with --yes", need>>20, limit>>20))
}
