package upstream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server starts a server that answers as the handler does.
func server(t testing.TB, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s
}

func answers(status int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
	}
}

// A component is ok on any status below 500 and on nothing else. No redirect is followed, and no address is logged.
func TestProbes(t *testing.T) {
	elsewhere := server(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	gone := httptest.NewServer(nil)
	gone.Close()
	secure := httptest.NewUnstartedServer(nil)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	for name, c := range map[string]struct {
		address string
		ok      bool
	}{
		"200":             {server(t, answers(200)).URL, true},
		"redirect":        {server(t, answers(302, "Location", elsewhere.URL)).URL, true},
		"404":             {server(t, answers(404)).URL, true},
		"499":             {server(t, answers(499)).URL, true},
		"500":             {server(t, answers(500)).URL, false},
		"503":             {server(t, answers(503)).URL, false},
		"huge header":     {server(t, answers(200, "X", strings.Repeat("x", 64<<10))).URL, false},
		"nobody there":    {gone.URL, false},
		"bad certificate": {secure.URL, false},
	} {
		t.Run(name, func(t *testing.T) {
			log := &eventstest.Log{}
			s := New(Config{Status: StatusConfig{Coin: c.address}, Logger: slog.New(slog.NewTextHandler(log, nil))})
			defer s.Close()

			coin := s.Status().Components[3]
			require.Equal(t, Component{ID: "coin", Configured: true, OK: c.ok, LatencyMs: coin.LatencyMs}, coin)
			require.Equal(t, !c.ok, strings.Contains(log.String(), "component=coin"), "logged: %s", log)
			require.NotContains(t, log.String(), strings.TrimPrefix(c.address, "http://"))
		})
	}
}

// network answers requests without one, so that a test's clock may jump.
type network func(r *http.Request) (*http.Response, error)

func (n network) RoundTrip(r *http.Request) (*http.Response, error) { return n(r) }

func textResponse(status int, text string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}
}

// All components are probed at once, callers share a round and see it for 15 s, and what hangs is waited
// for no longer than 6 s and asked again only once it has answered.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var databaseCalls, calls atomic.Int64
		hang := make(chan struct{})
		s := New(Config{
			Status: StatusConfig{
				Database: func(context.Context) error { databaseCalls.Add(1); <-hang; return nil }, // ignores its context
				Guard:    "http://guard", Chat: "http://chat",
			},
			transport: network(func(r *http.Request) (*http.Response, error) {
				calls.Add(1)
				time.Sleep(time.Second)
				return textResponse(http.StatusNoContent, ""), nil
			}),
		})

		began := time.Now()
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				require.Equal(t, []Component{
					{ID: "database", Configured: true, LatencyMs: 6000}, {ID: "guard", Configured: true, OK: true, LatencyMs: 1000},
					{ID: "chat", Configured: true, OK: true, LatencyMs: 1000}, {ID: "coin"},
				}, s.Status().Components)
			})
		}
		group.Wait()
		require.Equal(t, 6*time.Second, time.Since(began))
		require.EqualValues(t, 2, calls.Load(), "probes of the first round")

		time.Sleep(statusKept - time.Millisecond)
		s.Status()
		require.EqualValues(t, 2, calls.Load(), "a round is kept")

		time.Sleep(time.Millisecond)
		s.Status()
		require.EqualValues(t, 4, calls.Load(), "an old round is made anew")
		require.EqualValues(t, 1, databaseCalls.Load(), "the hanging call is the only one")

		close(hang)
		time.Sleep(statusKept)
		require.True(t, s.Status().Components[0].OK)
		s.Close()
	})
}

// A component that stays down is logged once, and once when it is back.
func TestChangesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &eventstest.Log{}
		failure := errors.New("input/output error")
		s := New(Config{
			Status: StatusConfig{Database: func(context.Context) error { return failure }},
			Logger: slog.New(slog.NewTextHandler(log, nil)),
		})
		for range 3 {
			require.False(t, s.Status().Components[0].OK)
			time.Sleep(statusKept)
		}
		failure = nil
		for range 3 {
			require.True(t, s.Status().Components[0].OK)
			time.Sleep(statusKept)
		}
		require.Equal(t, 1, strings.Count(log.String(), "does not answer"), log)
		require.Equal(t, 1, strings.Count(log.String(), "answers again"), log)
		s.Close()
	})
}

// Addresses that cannot be meant are refused at start.
func TestBadAddresses(t *testing.T) {
	for _, address := range []string{"ftp://x", "x", "http://", "http://:80", "http://u:p@x", "http://x/?q", "http://x/#f", "%"} {
		_, err := ParseURL(address)
		require.Error(t, err, address)
		require.Error(t, AvatarConfig{API: "https://api.example.org", CDN: address}.Check(), address)
	}
	for _, cfg := range []AvatarConfig{
		{API: "https://api.example.org"}, {CDN: "https://cdn.example.org"}, {Token: "x"},
		{API: "http://api.example.org", CDN: "https://cdn.example.org", Token: "x"},
	} {
		require.Error(t, cfg.Check(), "%+v", cfg)
	}
	for _, cfg := range []AvatarConfig{
		{}, {API: "https://api.example.org/api/v10/", CDN: "http://cdn.example.org", Token: "x"},
		{API: "http://127.0.0.1:1", CDN: "http://[::1]:2", Token: "x"}, {API: "http://platform", CDN: "http://platform", Token: "x"},
	} {
		require.NoError(t, cfg.Check(), "%+v", cfg)
	}
}
