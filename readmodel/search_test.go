package readmodel

import "testing"

// TestChangeLog: what is further back than the log is said to be.
func TestChangeLog(t *testing.T) {
	l := changeLog{version: 10, floor: 10}
	for seq := uint64(11); seq <= 10+5*maxChanges; seq++ {
		l.apply(change{rowChange: rowChange{row: &Row{list: 1, slot: uint32(seq)}}})
	}
	last := uint64(10 + 5*maxChanges)
	for _, back := range []uint64{0, 1, maxChanges} {
		got, ok := l.since(last - back)
		if !ok || uint64(len(got)) != back || back > 0 && (got[0].version != last-back+1 || got[0].ref.List() != 1 || got[0].ref.Slot() != uint32(last-back+1)) {
			t.Errorf("%d back: %d changes, %v", back, len(got), ok)
		}
	}
	if _, ok := l.since(last - 2*maxChanges - 1); ok {
		t.Error("more was promised than is kept")
	}
}
