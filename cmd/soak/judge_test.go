//go:build unix

package main

import (
	"strings"
	"testing"
	"time"
)

// grown is twenty samples, one a minute, that grow with each minute by so much.
func grown(goroutines, descriptors, heap, fresh float64) (all []sample) {
	for i := range 20 {
		n := float64(i)
		all = append(all, sample{after: time.Duration(i) * time.Minute, goroutines: 60 + n*goroutines, descriptors: 40 + n*descriptors,
			heap: 30e6 + n*heap, fresh: 28e6 + n*fresh})
	}
	return all
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		samples []sample
		want    string // in the only failure; empty: none
	}{
		{grown(0, 0, 0, 0), ""},
		{grown(0.1, 0.1, 40e3, 40e3), ""},
		{grown(-1, -1, -1e6, -1e6), ""},
		{grown(0.3, 0, 0, 0), "goroutines"},
		{grown(0, 0.3, 0, 0), "descriptors"},
		{grown(0, 0, 80e3, 0), "KB of live heap ("},
		{grown(0, 0, 0, 80e3), "KB of live heap after a rebuild"},
		{grown(0, 0, 0, 0)[:3], "too few"},
	} {
		failures, summary := judge(c.samples, 2)
		if c.want == "" && len(failures) == 0 {
			continue
		}
		if len(failures) != 1 || c.want == "" || !strings.Contains(failures[0], c.want) {
			t.Errorf("want %q: %q %s", c.want, failures, summary)
		}
	}
}

func TestMedian(t *testing.T) {
	for want, heaps := range map[float64][]float64{3: {3}, 2: {3, 1}, 5: {9, 5, 1}} {
		var all []sample
		for _, h := range heaps {
			all = append(all, sample{heap: h})
		}
		if got := median(all, func(s sample) float64 { return s.heap }); got != want {
			t.Errorf("median of %v is %v", heaps, got)
		}
	}
}
