package readmodel

import "testing"

// TestCowSlice: a snapshot stays as it was.
func TestCowSlice(t *testing.T) {
	var p cowSlice[int64]
	if p.get(9) != 0 {
		t.Error("not zero where nothing was set")
	}
	p.set(3*chunkLen, 1)
	old := p.snapshot()
	p.set(3*chunkLen, 2)
	p.set(9*chunkLen, 3)
	older := p.snapshot()
	p.set(3*chunkLen, 4)
	if old.get(3*chunkLen) != 1 || old.get(9*chunkLen) != 0 || older.get(3*chunkLen) != 2 || older.get(9*chunkLen) != 3 || p.get(3*chunkLen) != 4 {
		t.Error("a snapshot's value changed")
	}
}
