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
		"event rejected", "subject purged", "tail purged", "stream rewound", "stream deleted", "clock set back",
		"rebuilt", "held", "snapshot put", "snapshot restored", "data directory lost", "history begun",
	}
	for reason := range freezeReasons() {
		all = append(all, "frozen: "+reason)
	}
	return all
}

// freezeReasons are the reasons to freeze, by what Progress.LastError has of them.
func freezeReasons() map[string]string {
	return map[string]string{
		"another epoch":     "is another one: its epoch",
		"shorter":           ", before the checkpoint",
		"another message":   "holds another message at the checkpoint",
		"made again":        "was made again at",
		"put back":          "was put back to an older state",
		"seen wrong before": "looked wrong before and has no message",
		"looks right again": "looked wrong and",
		"missing":           "is missing",
		"another history":   "is of the history",
		"unusable settings": "cannot be used",
	}
}

// freezeReason names the reason in a sentence of Progress.LastError.
func freezeReason(sentence string) string {
	for reason, text := range freezeReasons() {
		if strings.Contains(sentence, text) && (reason != "shorter" || strings.Contains(sentence, " ends at ")) {
			return reason
		}
	}
	return sentence
}
