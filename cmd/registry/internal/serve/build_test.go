package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBuildID: two programs have two ids, for an id is the checksum of the program's file.
func TestBuildID(t *testing.T) {
	path, err := os.Executable()
	require.NoError(t, err)
	program, err := os.ReadFile(path)
	require.NoError(t, err)
	want := sha256.Sum256(program)
	if got, err := buildID(); got != hex.EncodeToString(want[:]) {
		t.Errorf("%q, %v; want %x", got, err, want)
	}
}
