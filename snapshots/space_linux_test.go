package snapshots

import (
	"errors"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"
)

// A refusal for lack of space says what must be free, and its figures agree.
func TestSpaceSays(t *testing.T) {
	dir := t.TempDir()
	if err := space(dir, 1); err != nil {
		t.Error(err)
	}
	err := space(dir, 1<<60)
	want := regexp.MustCompile(`^no space left on device in ` + regexp.QuoteMeta(dir) +
		`: 1152921504623624192 bytes must be free there \(1152921504606846976 for the store, 16777216 to spare\), and \d+ are$`)
	if !errors.Is(err, unix.ENOSPC) || !want.MatchString(err.Error()) {
		t.Errorf("%v", err)
	}
}

// A small store asks for as much again, not for 16 MiB.
func TestSpare(t *testing.T) {
	for need, want := range map[uint64]uint64{32 << 10: 32 << 10, 16 << 20: 16 << 20, 1 << 30: 16 << 20} {
		if got := spareFor(need); got != want {
			t.Errorf("%d to spare for %d", got, need)
		}
	}
}
