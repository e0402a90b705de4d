package serve

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer socket.Close()
	s := &server{cfg: Config{NotifySocket: path}, log: discard()}
	s.notify("READY=1")
	var got [16]byte
	if n, err := socket.Read(got[:]); err != nil || string(got[:n]) != "READY=1" {
		t.Errorf("got %q, %v", got[:n], err)
	}
	for _, nobody := range []string{"", filepath.Join(t.TempDir(), "missing")} {
		(&server{cfg: Config{NotifySocket: nobody}, log: discard()}).notify("READY=1")
	}
}
