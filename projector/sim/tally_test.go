package sim

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// tally counts what came about in a run of many seeds. Any goroutine may use it.
type tally struct {
	mu    sync.Mutex
	times map[string]int
}

func newTally() *tally { return &tally{times: map[string]int{}} }

func (t *tally) hit(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times[what]++
}

// missing returns what never came about of all that must.
func (t *tally) missing() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(musts(), func(what string) bool { return t.times[what] > 0 })
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(t.times)) {
		b.WriteString("\n\t" + what + ": " + itoa(t.times[what]))
	}
	return b.String()
}

// musts are the faults and the reasons to freeze that no run may be without.
func musts() []string {
	all := []string{
		"lost request", "lost reply", "late reply", "doubled reply", "error reply", "forbidden request", "aimed loss",
		"lost delivery", "doubled delivery", "answer without a leader", "silence without a leader", "lagging replica", "no consumer",
		"cut", "down", "black hole", "slow way", "broker restarted", "server stopped", "server killed",
		"write failed and lost", "write failed and kept", "slow disk",
		"event rejected", "subject purged", "clock set back",
		"rebuilt", "held", "snapshot put", "snapshot restored", "data directory lost",
	}
	return all
}
