//go:build unix

package main

import "fmt"

// allowance is how many goroutines and descriptors more are no leak: a connection or a snapshot that just ends has
// one or two. A leak of one with every fault would be dozens.
const allowance = 2

// leastSamples have a second quarter and a last.
const leastSamples = 4

// judge compares the second quarter of the samples, when what fills up is full, with the last, by the least of each: a
// leak raises that, too, while what happens to be there at one quiet point and not at the next (half a megabyte of a
// subscription, say) does not. It returns a line for each measure that has grown, and one that says all of them.
func judge(samples []sample, growth float64) (failures []string, summary string) {
	n := len(samples)
	if n < leastSamples {
		return []string{fmt.Sprintf("too few quiet points to judge: %d", n)}, ""
	}
	early, late := samples[n/4:n/2], samples[n-n/4:]
	for _, m := range []struct {
		name  string
		of    func(sample) float64
		per   float64
		grown func(before, after float64) bool
	}{
		{"goroutines", func(s sample) float64 { return s.goroutines }, 1, some},
		{"descriptors", func(s sample) float64 { return s.descriptors }, 1, some},
		{"KB of live heap", func(s sample) float64 { return s.heap }, 1024, percent(growth)},
		{"KB of live heap after a rebuild", func(s sample) float64 { return s.fresh }, 1024, percent(growth)},
	} {
		before, after := least(early, m.of), least(late, m.of)
		line := fmt.Sprintf("%.0f and %.0f %s (%+.2f %%)", before/m.per, after/m.per, m.name, (after/before-1)*100)
		summary += "; " + line
		if m.grown(before, after) {
			failures = append(failures, "not flat: "+line)
		}
	}
	return failures, "least in the second quarter and in the last" + summary
}

func some(before, after float64) bool { return after > before+allowance }

func percent(growth float64) func(before, after float64) bool {
	return func(before, after float64) bool { return after > before*(1+growth/100) }
}

func least(samples []sample, of func(sample) float64) float64 {
	low := of(samples[0])
	for _, s := range samples {
		low = min(low, of(s))
	}
	return low
}
