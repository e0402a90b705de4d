package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/readmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ready is the readiness of a server that has caught up.
var ready = httpapi.Readiness{Ready: true, AsOf: apitest.AsOf()}

// newConfig returns the configuration of a listener over apitest.People.
func newConfig(state httpapi.Readiness) Config {
	model, render := readmodel.New(), readmodel.NewRenderer()
	for i, d := range apitest.People() {
		seq := uint64(i + 1)
		model.Apply([]readmodel.Record{render.Render(seq, events.Revised(d, int64(seq)))}, seq)
	}
	return Config{
		Health:     &httpapi.Health{Reader: model, Readiness: func() httpapi.Readiness { return state }},
		Gatherer:   prometheus.NewRegistry(),
		Projection: func() Projection { return ProjectionOf(model.View()) },
	}
}

// ask sends one request to the listener's handler. Headers are pairs; Host is one of them.
func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "127.0.0.1:8081"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}

	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// /readyz is 200 exactly while lists are answered, and names what is wrong in either case;
// /projection says the same while it is 503.
func TestReady(t *testing.T) {
	old := apitest.AsOf().AddDate(-5, 0, 0)
	for name, test := range map[string]struct {
		state      httpapi.Readiness
		projection Projection
		maxAge     time.Duration
		minEntries int

		status    int
		body      string
		lastError string
	}{
		"caught up": {state: ready, status: 200, body: "ok"},
		"missing":   {state: ready, projection: Projection{Frozen: new("missing")}, status: 200, body: "ok, but frozen: the stream is missing; "},
		"foreign":   {state: ready, projection: Projection{Frozen: new("foreign")}, status: 200, body: "ok, but frozen: the stream is another one; "},
		"rewound":   {state: ready, projection: Projection{Rewound: true}, status: 200, body: "ok, but rewound: the stream came back in an older state; registry recover "},
		"stopping":  {state: httpapi.Readiness{Ready: true, Stopping: true}, status: 503, body: "stopping"},
		"loading":   {status: 503, body: "not caught up with the stream", lastError: "not caught up with the stream"},
		"by name": {state: httpapi.Readiness{Reason: "the broker is away"}, projection: Projection{LastError: new("the broker is away")},
			status: 503, body: "the broker is away", lastError: "the broker is away"},
		"stale": {state: httpapi.Readiness{Ready: true, AsOf: old}, maxAge: time.Hour, projection: Projection{LastError: new("The broker cannot be reached.")},
			status: 503, body: "out of touch with the stream since 2021-11-21T10:15:00.007Z",
			lastError: "out of touch with the stream since 2021-11-21T10:15:00.007Z: The broker cannot be reached."},
		"few": {state: ready, minEntries: 999, status: 503, body: fmt.Sprint(apitest.Shown(), " entries, fewer than the 999 required"),
			lastError: fmt.Sprint(apitest.Shown(), " entries, fewer than the 999 required")},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(test.state)
			cfg.Health.MaxStaleness, cfg.Health.MinEntries = test.maxAge, test.minEntries
			cfg.Projection = func() Projection { return test.projection }
			h := New(cfg)

			answer := ask(h, "GET", "/readyz")
			require.Equal(t, test.status, answer.Code)
			require.True(t, strings.HasPrefix(answer.Body.String(), test.body), answer.Body)
			require.Equal(t, 1, strings.Count(answer.Body.String(), "\n"), "one line")
			require.Equal(t, "ok\n", ask(h, "GET", "/livez").Body.String())

			var document Projection
			require.NoError(t, json.Unmarshal(ask(h, "GET", "/projection").Body.Bytes(), &document))
			if test.lastError == "" {
				require.Nil(t, document.LastError)
			} else {
				require.Equal(t, test.lastError, *document.LastError)
			}
		})
	}
}

// The document has exactly these members; every list is counted.
func TestProjection(t *testing.T) {
	cfg := newConfig(ready)
	base := cfg.Projection
	cfg.Projection = func() Projection {
		p := base()
		p.Stream, p.Epoch = "REGISTRY", "e1"
		p.LastSequence, p.Lag, p.LagSeconds, p.CaughtUp = 20, 6, 0.25, true
		p.Frozen, p.Rewound, p.Unpublished, p.WaitingPurges = new("foreign"), true, 3, 2
		p.Rejected, p.SnapshotSequence, p.RankedSequence = 1, 12, 13
		p.Rebuilding = &Rebuilding{Done: 5, Total: 20, PerSecond: 1000, ETASeconds: 0.015}
		p.LastError = new("the broker is away")
		return p
	}

	answer := ask(New(cfg), "GET", "/projection")
	require.Equal(t, "application/json; charset=utf-8", answer.Header().Get("Content-Type"))
	require.Equal(t, `{"stream":"REGISTRY","epoch":"e1","checkpoint":14,"lastSequence":20,"lag":6,"lagSeconds":0.25,`+
		`"caughtUp":true,"frozen":"foreign","rewound":true,"unpublished":3,"waitingPurges":2,"rejected":1,"digest":"ac9f222062f928956911ebc38736f197",`+
		`"entries":{"scammers":4,"servers":2,"legit":2},"snapshotSequence":12,"rankedSequence":13,`+
		`"rebuilding":{"done":5,"total":20,"perSecond":1000,"etaSeconds":0.015},"lastError":"the broker is away"}`+"\n", answer.Body.String())
}

func TestPaths(t *testing.T) {
	h := New(newConfig(ready))
	for target, want := range map[string]string{
		"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/pprof/cmdline": "admin", "/metrics": "",
	} {
		answer := ask(h, "GET", target)
		require.Equal(t, 200, answer.Code, target)
		require.Contains(t, answer.Body.String(), want, target)
		require.Equal(t, "no-store", answer.Header().Get("Cache-Control"), target)
		require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"), target)
	}
	for _, target := range []string{"/", "/nope", "/api/scammers", "/snapshots", "/rebuild", "/export", "/metrics/"} {
		require.Equal(t, 404, ask(h, "GET", target).Code, target)
		require.Equal(t, 404, ask(h, "POST", target, "Registry-Admin", "1").Code, target)
	}
	for _, target := range []string{"/livez", "/readyz", "/projection", "/metrics", "/debug/pprof/"} {
		answer := ask(h, "POST", target)
		require.Equal(t, 405, answer.Code, target)
		require.Equal(t, "GET, HEAD", answer.Header().Get("Allow"), target)
	}
}

// A page in an operator's browser reaches nothing, by whatever name it calls this address.
func TestGuard(t *testing.T) {
	cfg := newConfig(ready)
	cfg.Host = "registry-admin.internal"
	h := New(cfg)
	for status, requests := range map[int][][]string{
		200: {
			nil,
			{"Host", "10.1.2.3"}, {"Host", "[::1]:8081"}, {"Host", "[::1]"}, {"Host", "localhost"}, {"Host", "LOCALHOST:8081"},
			{"Host", "registry-admin.internal:8081"}, {"Host", "Registry-Admin.Internal"},
			{"Origin", "http://127.0.0.1:8081"}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"},
			{"Host", "registry-admin.internal", "Origin", "https://registry-admin.internal"},
		},
		403: {
			{"Host", "evil.example"}, {"Host", "evil.example:8081"}, {"Host", ""}, {"Host", ":8081"}, {"Host", "localhost.evil.example"},
			{"Host", "127.0.0.1.evil.example"}, {"Host", "xlocalhost"}, {"Host", "127.1"}, {"Host", "2130706433"},
			{"Host", "evil.example", "Origin", "http://evil.example"},
			{"Origin", "http://127.0.0.1:9999"}, {"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", "%zz"},
			{"Origin", "http://127.0.0.1:8081", "Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-origin", "Origin", "https://evil.example"},
		},
	} {
		for _, headers := range requests {
			for _, target := range []string{"/livez", "/readyz", "/projection", "/metrics", "/debug/pprof/cmdline"} {
				answer := ask(h, "GET", target, headers...)
				require.Equal(t, status, answer.Code, "%q %s: %s", headers, target, answer.Body)
			}
		}
	}
	require.Equal(t, 403, ask(New(newConfig(ready)), "GET", "/livez", "Host", ":8081").Code, "an empty name is no configured name")
}

// A change needs a header that makes a browser ask first, and the browser is never told yes.
func TestCommand(t *testing.T) {
	rebuilds := 0
	cfg := newConfig(ready)
	cfg.Rebuild = func(context.Context) (Rebuilt, error) {
		rebuilds++
		return Rebuilt{Events: 7}, nil
	}
	h := New(cfg)

	require.Contains(t, ask(h, "POST", "/rebuild", "Registry-Admin", "1").Body.String(), `"events":7`)
	require.Equal(t, 1, rebuilds)

	preflight := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "registry-admin"}
	for _, test := range []struct {
		method, target string
		headers        []string
		status         int
	}{
		{"POST", "/rebuild", nil, 403},
		{"POST", "/rebuild", []string{"Registry-Admin", "0"}, 403},
		{"POST", "/rebuild", []string{"Registry-Admin", "1", "Origin", "https://evil.example"}, 403},
		{"POST", "/rebuild", []string{"Registry-Admin", "1", "Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/rebuild", []string{"Registry-Admin", "1"}, 405},
		{"OPTIONS", "/rebuild", append(preflight, "Origin", "https://evil.example"), 403},
		{"OPTIONS", "/rebuild", append(preflight, "Origin", "http://127.0.0.1:8081"), 405},
	} {
		answer := ask(h, test.method, test.target, test.headers...)
		require.Equal(t, test.status, answer.Code, "%s %s %q", test.method, test.target, test.headers)
		for name := range answer.Header() {
			require.False(t, strings.HasPrefix(name, "Access-Control-"), name)
		}
	}
	require.Equal(t, 1, rebuilds, "a refused request rebuilds nothing")
}

func TestErrorsHaveAStatus(t *testing.T) {
	for status, err := range map[int]error{
		409: fmt.Errorf("because: %w", Refused("no")), 503: Unavailable("not now"), 500: errors.New("broken"),
	} {
		cfg := newConfig(ready)
		cfg.Rebuild = func(context.Context) (Rebuilt, error) { return Rebuilt{}, err }
		answer := ask(New(cfg), "POST", "/rebuild", "Registry-Admin", "1")
		require.Equal(t, status, answer.Code)
		require.Equal(t, err.Error()+"\n", answer.Body.String())
	}
}

func TestToken(t *testing.T) {
	cfg := newConfig(ready)
	cfg.Token = "s3cret"
	h := New(cfg)
	for authorization, status := range map[string]int{
		"Bearer s3cret": 200, "bearer s3cret": 200,
		"": 401, "Bearer": 401, "Bearer ": 401, "Bearer s3cre": 401, "Bearer s3crets": 401, "s3cret": 401, "Basic s3cret": 401, "Basic YTpzM2NyZXQ=": 401,
	} {
		for _, target := range []string{"/projection", "/metrics", "/debug/pprof/cmdline"} {
			answer := ask(h, "GET", target, "Authorization", authorization)
			require.Equal(t, status, answer.Code, "%q %s", authorization, target)
			require.Equal(t, map[int]string{401: "Bearer"}[status], answer.Header().Get("WWW-Authenticate"))
		}
		for _, target := range []string{"/livez", "/readyz"} {
			require.Equal(t, 200, ask(h, "GET", target, "Authorization", authorization).Code, "%q %s", authorization, target)
		}
	}
	require.Equal(t, 401, ask(h, "GET", "/nope").Code)
}

// archives exports two lines, and then ends with err.
type archives struct {
	began bool
	err   error
}

func (a archives) Create(context.Context) (any, error) { return nil, a.err }

func (a archives) Export(_ context.Context, w io.Writer, begin func()) error {
	if a.began {
		begin()
		_, _ = io.WriteString(w, "one\ntwo\n")
	}
	return a.err
}

// An export that fails midway never looks complete; one that cannot begin says why.
func TestExport(t *testing.T) {
	for name, test := range map[string]struct {
		archives archives
		status   int
		body     string
		aborted  bool
	}{
		"whole":  {archives{began: true}, 200, "one\ntwo\n", false},
		"midway": {archives{began: true, err: errors.New("disk")}, 200, "one\ntwo\n", true},
		"never":  {archives{err: Unavailable("not caught up")}, 503, "not caught up\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(ready)
			cfg.Snapshots = test.archives
			answer := httptest.NewRecorder()
			export := func() { New(cfg).ServeHTTP(answer, httptest.NewRequest("GET", "http://127.0.0.1:8081/export", nil)) }
			if test.aborted {
				require.PanicsWithValue(t, http.ErrAbortHandler, export)
			} else {
				require.NotPanics(t, export)
			}
			require.Equal(t, test.status, answer.Code)
			require.Equal(t, test.body, answer.Body.String())
		})
	}
}

// deadlineRecorder remembers the time limit of a response.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (d *deadlineRecorder) SetWriteDeadline(deadline time.Time) error {
	d.deadline = deadline
	return nil
}

// A command may take longer than the server's write timeout, and ends with its client.
func TestCommandsOutlastTheWriteTimeout(t *testing.T) {
	ended := fmt.Errorf("the client: %w", context.Canceled)
	cfg := newConfig(ready)
	cfg.Snapshots = archives{err: ended}
	cfg.Rebuild = func(ctx context.Context) (Rebuilt, error) { return Rebuilt{}, ctx.Err() }
	h := New(cfg)
	for target, method := range map[string]string{"/rebuild": "POST", "/snapshots": "POST", "/export": "GET"} {
		t.Run(target, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			leave()
			r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1:8081"+target, nil)
			r.Header.Set("Registry-Admin", "1")
			answer := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
			h.ServeHTTP(answer, r)
			require.Greater(t, time.Until(answer.deadline), commandTimeout/2, "the time limit")
			require.Contains(t, answer.Body.String(), context.Canceled.Error())
		})
	}
}
