package ranked

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// cpuTime returns the CPU time of the process so far.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Words that strangers wrote, two letters away from those of a query, or the same but for diacritics,
// decide neither what it looks at nor what it costs.
func TestStrangersWordsAreNotAllLookedAt(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("its CPU time is not the program's")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var asked []string
	for range 10 {
		asked = append(asked, strings.Map(func(rune) rune { return 'a' + rune(rng.IntN(26)) }, "xxxxxxxxx"))
	}
	near := func(word string) string {
		b := []byte(word)
		for _, i := range rng.Perm(len(b))[:2] { // another letter each, so that nobody has written what is asked
			b[i] = 'a' + (b[i]-'a'+byte(1+rng.IntN(25)))%26
		}
		return string(b)
	}
	marked := func() string {
		return strings.Map(func(rune) rune { return []rune("aąàáâãäåāă")[rng.IntN(10)] }, "aaaaaaa")
	}
	r := newRegistry(t, t.TempDir())
	for i := range 44 { // 85,000 words
		var reason strings.Builder
		for reason.Len() < 19_900 {
			if i%4 == 3 {
				reason.WriteString(marked() + " ")
			} else {
				reason.WriteString(near(asked[rng.IntN(len(asked))]) + " ")
			}
		}
		r.apply(entry(events.Scammers, fmt.Sprint("s", i), "x", "900000000000000000001", reason.String()[:19_900], i%2 == 0))
	}
	r.start()
	defer r.stop()
	for _, words := range []string{strings.Join(asked, " "), "aaaaaaa " + strings.Join(asked[:3], " ")} {
		r.search(readmodel.RankedQuery{Words: words}) // so that the automata are made
		const times = 5
		before := cpuTime(t)
		for range times {
			r.search(readmodel.RankedQuery{Words: words})
		}
		took := (cpuTime(t) - before) / times
		t.Logf("%.20s: %v of CPU time", words, took)
		if took > 150*time.Millisecond { // 5 ms with the bound, 280 and more without it
			t.Errorf("%.20s: %v of CPU time", words, took)
		}
	}
}
