package eventstest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"
)

// vocabulary is the number of different words of Texts.
const vocabulary = 8000

// Texts makes the names and reasons that benchmarks measure with: words in a realistic distribution.
// The same seed gives the same texts. One goroutine at a time may use it.
type Texts struct {
	*rand.Rand
	words []string
	often *rand.Zipf // draws indexes of words, mostly low ones
}

// NewTexts makes the vocabulary. The first word is in two of five reasons, and most words are in few.
func NewTexts(r *rand.Rand) *Texts {
	t := &Texts{Rand: r, words: strings.Fields("oszust konto nitro discord kupujący paysafecard serwer zł phishing token przelew")}
	for len(t.words) < vocabulary {
		t.words = append(t.words, t.word())
	}
	t.often = rand.NewZipf(r, 1.1, 8, vocabulary-1)
	return t
}

// word returns two to four syllables.
func (t *Texts) word() string {
	syllables := strings.Fields("ka mi ro szy nek wo ja cz to pa le dra gon xx pro ghost sni per dar k łu żó wik tor max zi om el bar tek")
	var b strings.Builder
	for range 2 + t.IntN(3) {
		b.WriteString(syllables[t.IntN(len(syllables))])
	}
	return b.String()
}

// Reason returns 6 to 35 words.
func (t *Texts) Reason() string {
	words := make([]string, 6+t.IntN(30))
	for i := range words {
		words[i] = t.words[t.often.Uint64()]
	}
	return strings.Join(words, " ")
}

// Name returns a word and a number.
func (t *Texts) Name() string { return fmt.Sprintf("%s%d", t.word(), t.IntN(9999)) }

// CPUTime returns the time that the process has spent on all CPUs.
func CPUTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
