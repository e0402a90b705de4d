package serve

import (
	"log/slog"
	"net"
)

// notifyReady tells systemd, or another supervisor that speaks the protocol of sd_notify(3), that the
// process is ready. Without a supervisor, socket is empty. A failure is only logged.
func notifyReady(socket string, log *slog.Logger) {
	if socket == "" {
		return
	}

	conn, err := net.Dial("unixgram", socket) // a leading @ means an abstract name, as in the protocol
	if err == nil {
		_, err = conn.Write([]byte("READY=1"))
		_ = conn.Close()
	}
	if err != nil {
		log.Warn("cannot notify the supervisor", "error", err)
	}
}
