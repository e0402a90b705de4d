package benchtext

import (
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The first word is in two of five reasons, most others in few, and the same source makes the same
// texts.
func TestTexts(t *testing.T) {
	a, b := New(rand.New(rand.NewPCG(1, 1))), New(rand.New(rand.NewPCG(1, 1)))
	often := 0
	for range 1000 {
		reason := a.Reason()
		if reason != b.Reason() || a.Name() != b.Name() {
			t.Fatal("other texts from the same source")
		}
		if strings.Contains(reason, "oszust") {
			often++
		}
	}
	if often < 300 || often > 500 {
		t.Errorf("the most frequent word is in %d of 1000 reasons", often)
	}
}
