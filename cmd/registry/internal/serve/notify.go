package serve

import (
	"log/slog"
	"net"
)

// notifySupervisor tells systemd, or another supervisor that speaks the protocol of sd_notify(3), that
// the process is ready or is stopping. An empty socket means that there is none. A failure is logged:
// the service goes on.
func notifySupervisor(socket, state string, log *slog.Logger) {
	if socket == "" {
		return
	}

	conn, err := net.Dial("unixgram", socket) // a leading @ means an abstract name, as in the protocol
	if err == nil {
		_, err = conn.Write([]byte(state))
		_ = conn.Close()
	}
	if err != nil {
		log.Warn("cannot notify the supervisor", "state", state, "error", err)
	}
}
