package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"example.org/registry/events/eventstest"
	"github.com/stretchr/testify/require"
)

func TestIsRequestID(t *testing.T) {
	for id, want := range map[string]bool{
		"0198b6a2-5a57-7c3e-9f60-3f2a1c1d7e11": true, "a1b2c3d4e5f6": true,
		"": false, "short": false, "99016474520097277832": false, "990-164-745": false, "Jan Oszust": false,
		"10.0.0.1\r\nx": false, "zażółć-gęślą": false,
	} {
		if got := isRequestID(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}

// The log of requests names routes and nobody: no query, no id, no address.
func TestRequestLog(t *testing.T) {
	f := serve(t, func(c *Config) { c.RequestLog = true })
	for _, path := range []string{"/api/check?id=99016474520097277832", "/api/chat/avatar/99016474520097277832", "/api/99016474520097277832", "/api/check"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+f.addr+path, nil)
		require.NoError(t, err)
		r.Header.Set("X-Request-Id", "a1b2c3d4e5f6")
		resp, err := f.client.Do(r)
		require.NoError(t, err)
		resp.Body.Close()
	}
	eventstest.Until(t, func() bool { return strings.Count(f.log.String(), "msg=request ") == 4 })
	log := f.log.String()
	for _, want := range []string{"route=/api/check status=200 ms=", "route=/api/chat/avatar/:chatUserId status=200", "route=none status=404", "route=/api/check status=400", "requestId=a1b2c3d4e5f6"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	for _, never := range []string{"9901647", "127.0.0.1"} {
		if strings.Contains(log, never) {
			t.Errorf("%q in\n%s", never, log)
		}
	}
}
