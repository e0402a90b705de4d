package serve

import "testing"

// TestPercentFor: a small heap is given the least head-room there is, a large one gcPercent.
func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 6390, 64 << 20: 790, 128 << 20: 390, 1 << 30: 40, 1 << 31: 25, 1 << 34: 25} {
		if got := percentFor(live); got != want {
			t.Errorf("%d bytes live: %d%%, want %d%%", live, got, want)
		}
	}
}
