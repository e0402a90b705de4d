package ranked

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// Words that strangers wrote, two letters away from those of a query, or the same but for diacritics,
// decide neither what it looks at nor what it costs.
func TestStrangersWordsAreNotAllLookedAt(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("its allocations are not the program's")
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
		q := readmodel.RankedQuery{Words: words}
		// Every key that is looked at is allocated: 17,000 with the bounds, 47,000 and more without either.
		if looks := testing.AllocsPerRun(5, func() { r.search(q) }); looks > 30_000 {
			t.Errorf("%.20s: %.0f allocations", words, looks)
		}
	}
}
