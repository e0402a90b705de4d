//go:build unix

package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// sample is what a replica uses at a quiet point.
type sample struct {
	after       time.Duration // since the soak began
	goroutines  float64
	descriptors float64
	heap        float64 // bytes that live after a collection, of a read model that has grown old
	fresh       float64 // the same, right after a rebuild
	resident    float64 // bytes; for information
}

// usage reads goroutines and descriptors once they stand still: connections that were hung up are still being
// closed.
func usage(ctx context.Context, r *replica) (x sample, err error) {
	const still = 5
	same := 0
	waiting := until(ctx, "goroutines and descriptors stand still", func() bool {
		var now sample
		if now, err = metrics(ctx, r); err != nil {
			return true
		}
		if now.goroutines == x.goroutines && now.descriptors == x.descriptors {
			same++
		} else {
			same = 0
		}
		x = now
		return same == still || !pause(ctx, 100*time.Millisecond)
	})
	if err == nil {
		err = waiting
	}
	return x, err
}

func metrics(ctx context.Context, r *replica) (x sample, err error) {
	a, err := ask(ctx, r.Admin+"/metrics", nil)
	if err != nil {
		return x, err
	}
	for name, to := range map[string]*float64{"go_goroutines": &x.goroutines, "process_open_fds": &x.descriptors,
		"process_resident_memory_bytes": &x.resident} {
		if *to, err = number(a.body, `(?m)^`+name+` (\S+)$`); err != nil {
			return x, fmt.Errorf("/metrics: %s: %w", name, err)
		}
	}
	return x, nil
}

// heapTimes is how often the heap is collected for a number: what is pooled survives one collection, and the
// profile itself takes a little, now and then more.
const heapTimes = 4

// liveHeap is the least that lives after some collections.
func liveHeap(ctx context.Context, r *replica) (least float64, err error) {
	least = math.Inf(1)
	for range heapTimes {
		a, err := ask(ctx, r.Admin+"/debug/pprof/heap?gc=1&debug=1", nil)
		if err != nil {
			return 0, err
		}
		now, err := number(a.body, `(?m)^# HeapAlloc = (\d+)$`)
		if err != nil {
			return 0, fmt.Errorf("/debug/pprof/heap: %w", err)
		}
		least = min(least, now)
	}
	return least, nil
}

func number(text []byte, pattern string) (float64, error) {
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("no line like %s", pattern)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
