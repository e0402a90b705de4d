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

// bumpy is flat but for one time in three.
func bumpy() []sample {
	all := grown(0, 0, 0, 0)
	for i := range all {
		if i%3 == 0 || i > 15 && i < 19 {
			all[i].heap += 2e6
			all[i].goroutines += 5
		}
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
		{bumpy(), ""},
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
