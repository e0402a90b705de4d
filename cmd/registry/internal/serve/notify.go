package serve

import "net"

// notify tells systemd, or another supervisor that speaks the protocol of sd_notify(3), that the
// process is ready or is stopping. Without one (an empty NotifySocket) it does nothing. A failure
// is logged: the service goes on.
func (s *server) notify(state string) {
	if s.cfg.NotifySocket == "" {
		return
	}
	conn, err := net.Dial("unixgram", s.cfg.NotifySocket) // a leading @ means an abstract name, as in the protocol
	if err == nil {
		_, err = conn.Write([]byte(state))
		_ = conn.Close()
	}
	if err != nil {
		s.log.Warn("the supervisor could not be told", "state", state, "error", err)
	}
}
