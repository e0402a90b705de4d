package deploy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// route is a part of the requests: so many different ones, asked for by Zipf's law, and how long a cache keeps an answer.
type route struct {
	share   float64 // of all requests
	urls    uint64  // different ones
	s       float64 // exponent; the higher, the more alike are the requests
	seconds float64 // fresh for (API contract, lists and check)
}

func lists() route  { return route{share: 0.5, urls: 2_000, s: 1.3, seconds: 30} }
func checks() route { return route{share: 0.5, urls: 1_000_000, s: 1.05, seconds: 10} }

// reaching is how many requests a second get past one cache, of rate that arrive: those that find nothing fresh. A list that
// is stale is shown and asked for in the background, which reaches a replica just the same.
func (r route) reaching(rate float64) float64 {
	const warm, end = 60, 180 // seconds
	random := rand.New(rand.NewPCG(1, 2))
	asked := rand.NewZipf(random, r.s, 1, r.urls-1)
	kept := map[uint64]float64{}
	missed := 0
	for now := 0.0; now < end; now += random.ExpFloat64() / (rate * r.share) {
		if url := asked.Uint64(); kept[url] <= now {
			kept[url] = now + r.seconds
			if now >= warm {
				missed++
			}
		}
	}
	return float64(missed) / (end - warm)
}

// The table in capacity.md is what the simulation yields.
func TestSimulatedHitRatio(t *testing.T) {
	page, err := os.ReadFile("capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{10, 100, 1000, 10_000} {
		l, c := lists().reaching(rate), checks().reaching(rate)
		row := fmt.Sprintf("| %.0f | %.1f %% | %.1f %% | %.0f |", rate, 100*(1-l/(rate*lists().share)), 100*(1-c/(rate*checks().share)), l+c)
		if !strings.Contains(string(page), row) {
			t.Error("not in capacity.md:", row)
		}
	}
}
