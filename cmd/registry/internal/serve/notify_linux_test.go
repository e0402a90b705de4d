package serve

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotify: the supervisor is told in one datagram.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()

	notifyReady(path, discard())
	var got [16]byte
	n, err := socket.Read(got[:])
	require.NoError(t, err)
	require.Equal(t, "READY=1", string(got[:n]))

	// A supervisor that is not there is no failure.
	notifyReady("", discard())
	notifyReady(filepath.Join(t.TempDir(), "missing"), discard())
}
