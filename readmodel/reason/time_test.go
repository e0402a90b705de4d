//go:build measure

package reason

import (
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel/benchtext"
)

// TestTime holds the CPU time of the longest reason of each pair of markers, and of those that stopped
// the registry once, to the contract's bound (readmodel/reason/reason.go).
func TestTime(t *testing.T) {
	const most = 50 * time.Millisecond
	r := NewRenderer()
	all := knownHostiles()
	for _, h := range hostiles() {
		all = append(all, h.reason(events.MaxReason))
	}
	var worst time.Duration
	for _, reason := range all {
		least := time.Hour
		for range 10 { // the machine does other things
			begun := benchtext.CPUTime()
			r.HTML(reason)
			if least = min(least, benchtext.CPUTime()-begun); least <= most {
				break
			}
		}
		if worst = max(worst, least); least > most {
			t.Errorf("%v: %.20q…%.20q", least, reason, reason[len(reason)-20:])
		}
	}
	t.Logf("the worst: %v", worst)
}
