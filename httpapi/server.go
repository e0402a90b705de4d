package httpapi

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// readTimeout is how long a reader may take to send a request.
const readTimeout = 5 * time.Second

// NewServer is an http.Server for either listener that no reader can hold up for long: 5 s to
// send a request, 15 s to get the answer and take it, 60 s between two, 16 KiB of headers. What it
// refuses itself it answers in plain text. Nil logger: its messages are dropped. The caller serves,
// shuts down and waits.
func NewServer(h http.Handler, logger *slog.Logger) *http.Server {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &http.Server{
		Handler:                      h,
		ReadHeaderTimeout:            readTimeout,
		ReadTimeout:                  readTimeout, // the same, which spares every request a timer: there are no bodies
		WriteTimeout:                 15 * time.Second,
		IdleTimeout:                  60 * time.Second,
		MaxHeaderBytes:               16 << 10,
		ConnContext:                  withConn,
		DisableGeneralOptionsHandler: true, // OPTIONS * is an unknown path like any other
		ErrorLog:                     slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// LimitConnections makes l accept at most n connections at a time; more wait to be accepted.
// Zero: as many as the process's descriptor limit leaves beside its own files. On a server of
// NewServer, pages are sent in one write each over the connections of the listener returned.
func LimitConnections(l net.Listener, n int) net.Listener {
	if n <= 0 {
		n = connectionsFor(descriptorLimit())
	}
	return joinListener{netutil.LimitListener(l, n), &sync.Pool{}}
}

// The bounds on connections that follow from the descriptor limit.
const (
	ownDescriptors = 128     // for the store, the broker, upstreams and the admin listener
	mostByDefault  = 1 << 14 // an idle connection costs some 10 KB of memory
)

// connectionsFor leaves ownDescriptors free, or half of a very small limit.
func connectionsFor(descriptors uint64) int {
	if descriptors < 2*ownDescriptors {
		return int(max(descriptors/2, 1))
	}
	return int(min(descriptors-ownDescriptors, mostByDefault))
}
