package deploy

import (
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
)

// origin answers with a number that grows by one with each request, until it is broken. It stands in for a replica where the
// test needs shorter times than the API has.
type origin struct {
	address string
	header  http.Header // set before the first request
	count   atomic.Int64
	broken  atomic.Bool
	refused atomic.Int64
}

func newOrigin(t *testing.T) *origin {
	t.Helper()
	o := &origin{header: http.Header{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.address = l.Addr().String()
	server := &http.Server{Handler: o}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return o
}

// ServeHTTP answers the cache's probe always: a replica may fail at one question and answer others.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/check" {
		return
	}
	if o.broken.Load() {
		o.refused.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"error":"x"}`))
		return
	}
	for name := range o.header {
		w.Header().Set(name, o.header.Get(name))
	}
	_, _ = w.Write([]byte(strconv.FormatInt(o.count.Add(1), 10)))
}
