//go:build measure

package deploy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// route is a part of the requests. They follow Zipf's law.
type route struct {
	share   float64 // of all requests
	urls    uint64  // number of different ones
	s       float64 // Zipf's exponent; the higher, the more often the same ones
	seconds float64 // a cache may answer for so long (httpapi/CONTRACT.md#caching)
}

func lists() route  { return route{share: 0.5, urls: 2_000, s: 1.3, seconds: 10} }
func checks() route { return route{share: 0.5, urls: 1_000_000, s: 1.05, seconds: 10} }

// reaching returns how many of rate requests a second get past one cache because it has nothing
// fresh. A stale list is shown and fetched in the background, which reaches a replica, too.
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

// TestSimulatedHitRatio compares the table in capacity.md with the simulation.
func TestSimulatedHitRatio(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("capacity.md")
	require.NoError(t, err)
	for _, rate := range []float64{10, 100, 1000, 10_000} {
		l, c := lists().reaching(rate), checks().reaching(rate)
		row := fmt.Sprintf("| %.0f | %.1f%% | %.1f%% | %.0f |", rate, 100*(1-l/(rate*lists().share)), 100*(1-c/(rate*checks().share)), l+c)
		if !strings.Contains(string(page), row) {
			t.Error("not in capacity.md:", row)
		}
	}
}
