package admin

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/httpapi"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/httpapi/wire"
	"example.org/registry/readmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a read model, the public API and the listener over it.
type fixture struct {
	model   *readmodel.Model
	health  *httpapi.Health
	metrics *prometheus.Registry
	state   atomic.Pointer[httpapi.Readiness]
	public  *httpapi.Public
}

// serve makes the public API over apitest.People. It is ready and not frozen.
func serve(t testing.TB, mutate ...func(*httpapi.Health)) *fixture {
	t.Helper()
	f := &fixture{model: readmodel.New(), metrics: prometheus.NewRegistry()}
	render := readmodel.NewRenderer()
	for i, d := range apitest.People() {
		seq := uint64(i + 1)
		f.model.Apply([]readmodel.Record{render.Render(seq, events.Revised(d, int64(seq)))}, seq)
	}
	f.state.Store(&httpapi.Readiness{Ready: true, AsOf: apitest.AsOf()})
	f.health = &httpapi.Health{Reader: f.model, Readiness: func() httpapi.Readiness { return *f.state.Load() }}
	for _, m := range mutate {
		m(f.health)
	}
	var err error
	if f.public, err = httpapi.NewPublic(httpapi.Config{Health: f.health, Metrics: f.metrics}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.public.Close)
	return f
}

// listStatus returns the status of a list of the public API.
func (f *fixture) listStatus() int {
	rec := httptest.NewRecorder()
	f.public.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/scammers", nil))
	return rec.Code
}

func newAdmin(t testing.TB, f *fixture, mutate ...func(*Config)) http.Handler {
	t.Helper()
	cfg := Config{Health: f.health, Gatherer: f.metrics, Projection: func() Projection { return ProjectionOf(f.model.View()) }}
	for _, m := range mutate {
		m(&cfg)
	}
	h, err := New(cfg)
	require.NoError(t, err)
	return h
}

// ask sends one request to the listener's handler. Headers are pairs; Host is one of them.
func ask(t testing.TB, h http.Handler, method, target string, headers ...string) (int, string, http.Header) {
	t.Helper()
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
	return rec.Code, rec.Body.String(), rec.Header()
}

// /readyz is 200 exactly when lists are answered, and says by name why it is not.
func TestReadyz(t *testing.T) {
	as := func(*httpapi.Health) {} // configured as it is
	for name, c := range map[string]struct {
		health func(*httpapi.Health)
		state  httpapi.Readiness
		status int
		body   string
	}{
		"caught up":   {as, httpapi.Readiness{Ready: true}, 200, "ok\n"},
		"frozen":      {as, httpapi.Readiness{Ready: true, Frozen: true}, 200, "ok\n"},
		"loading":     {as, httpapi.Readiness{}, 503, "not caught up with the stream\n"},
		"by name":     {as, httpapi.Readiness{Reason: "the broker is away and nothing is saved"}, 503, "the broker is away and nothing is saved\n"},
		"stale":       {func(h *httpapi.Health) { h.MaxStaleness = time.Hour }, httpapi.Readiness{Ready: true, AsOf: apitest.AsOf().AddDate(-5, 0, 0)}, 503, "out of touch with the stream since 2021-11-21T10:15:00.007Z\n"},
		"few entries": {func(h *httpapi.Health) { h.MinEntries = apitest.Shown() + 1 }, httpapi.Readiness{Ready: true}, 503, fmt.Sprintf("%d entries, fewer than the %d required\n", apitest.Shown(), apitest.Shown()+1)},
	} {
		f := serve(t, c.health)
		f.state.Store(&c.state)
		h := newAdmin(t, f)
		if status, body, _ := ask(t, h, "GET", "/readyz"); status != c.status || body != c.body {
			t.Errorf("%s: %d %q", name, status, body)
		}
		if got := f.listStatus(); got != c.status {
			t.Errorf("%s: lists are %d", name, got)
		}
		if status, body, _ := ask(t, h, "GET", "/livez"); status != 200 || body != "ok\n" {
			t.Errorf("%s: /livez %d %q", name, status, body)
		}
	}
}

// While the process stops, nobody is sent here any more, but who is here is answered.
func TestReadyzStopping(t *testing.T) {
	f := serve(t)
	f.state.Store(&httpapi.Readiness{Ready: true, Stopping: true, AsOf: apitest.AsOf()})
	if status, body, _ := ask(t, newAdmin(t, f), "GET", "/readyz"); status != 503 || body != "stopping\n" {
		t.Errorf("/readyz: %d %q", status, body)
	}
	if got := f.listStatus(); got != 200 {
		t.Errorf("lists are %d", got)
	}
}

func TestProjectionDocument(t *testing.T) {
	f := serve(t)
	sentence := "the broker is away"
	for file, p := range map[string]func() Projection{
		"projection": func() Projection {
			p := ProjectionOf(f.model.View())
			p.Stream, p.StreamEpoch, p.StreamCreated = "REGISTRY", "e1", apitest.AsOf()
			p.LastSequence, p.Lag, p.LagSeconds, p.CaughtUp = 20, 6, 0.25, true
			p.Rejected, p.SnapshotSequence, p.RankedSequence, p.LastError = 1, 12, 13, &sentence
			p.Rebuilding = &Rebuilding{Done: 5, Total: 20, PerSecond: 1000, ETASeconds: 0.015}
			p.Unpublished, p.Rewound, p.Frozen = new(3), true, new("foreign")
			return p
		},
		"projection_zero": func() Projection { return Projection{} },
	} {
		status, body, header := ask(t, newAdmin(t, f, func(c *Config) { c.Projection = p }), "GET", "/projection")
		if status != 200 || header.Get("Content-Type") != "application/json; charset=utf-8" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", status, header)
		}
		golden(t, file, strings.TrimSuffix(body, "\n"))
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(body), &members))
		want := strings.Fields(`caughtUp checkpoint digest entries frozen indexSequence lag lagSeconds lastError lastSequence
			rankedSequence rebuilding rejected rewound snapshotSequence stream streamCreated streamEpoch subjectsNotErased unpublished`)
		var got []string
		for name := range members {
			got = append(got, name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("members %q", got)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares body with the golden file of that name.
func golden(t *testing.T, name, body string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden.json")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(body+"\n"), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if body+"\n" != string(want) {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

// Whenever lists are 503, the document says why (httpapi/CONTRACT.md#readiness).
func TestProjectionSaysWhy(t *testing.T) {
	cause := "The broker cannot be reached."
	as := func(*httpapi.Health) {} // configured as it is
	for name, c := range map[string]struct {
		health func(*httpapi.Health)
		state  httpapi.Readiness
		cause  *string
		want   string
	}{
		"few":              {func(h *httpapi.Health) { h.MinEntries = 999 }, httpapi.Readiness{Ready: true, AsOf: apitest.AsOf()}, nil, fmt.Sprint(apitest.Shown(), " entries, fewer than the 999 required")},
		"stale":            {func(h *httpapi.Health) { h.MaxStaleness = time.Hour }, httpapi.Readiness{Ready: true, AsOf: apitest.AsOf().AddDate(-5, 0, 0)}, &cause, "out of touch with the stream since 2021-11-21T10:15:00.007Z: The broker cannot be reached."},
		"loading":          {as, httpapi.Readiness{Reason: cause}, &cause, cause},
		"loading, unnamed": {as, httpapi.Readiness{}, nil, "not caught up with the stream"},
	} {
		f := serve(t, c.health)
		f.state.Store(&c.state)
		h := newAdmin(t, f, func(cfg *Config) {
			cfg.Projection = func() Projection { return Projection{LastError: c.cause} }
		})
		_, body, _ := ask(t, h, "GET", "/projection")
		var got Projection
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.LastError == nil || *got.LastError != c.want {
			t.Errorf("%s: %s (%v), want %q", name, body, err, c.want)
		}
	}
}

func TestAdminPaths(t *testing.T) {
	f := serve(t)
	h := newAdmin(t, f)
	f.listStatus()
	for target, want := range map[string]string{
		"/metrics": "registry_http_requests_total{error=\"\",route=\"/api/scammers\",status=\"200\"} 1", "/debug/pprof/": "goroutine",
		"/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/pprof/cmdline": "admin", "/projection": `"checkpoint":` + apitest.Sequence(0),
	} {
		if status, body, _ := ask(t, h, "GET", target); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", target, status, body)
		}
	}
	for _, target := range []string{"/nope", "/api/scammers", "/snapshots", "/rebuild", "/export", "/metrics/"} {
		for _, method := range []string{"GET", "POST"} {
			if status, _, _ := ask(t, h, method, target, "Registry-Admin", "1"); status != 404 {
				t.Errorf("%s %s: %d", method, target, status)
			}
		}
	}
	for _, target := range []string{"/livez", "/readyz", "/projection", "/metrics", "/debug/pprof/"} {
		if status, _, header := ask(t, h, "POST", target); status != 405 || header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d %q", target, status, header.Get("Allow"))
		}
	}
}

// A page in an operator's browser reaches nothing, by whatever name it calls this address.
func TestAdminGuard(t *testing.T) {
	h := newAdmin(t, serve(t), func(c *Config) { c.Host = "registry-admin.internal" })
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{nil, 200},
		{[]string{"Host", "10.1.2.3"}, 200}, {[]string{"Host", "[::1]:8081"}, 200}, {[]string{"Host", "[::1]"}, 200},
		{[]string{"Host", "localhost"}, 200}, {[]string{"Host", "LOCALHOST:8081"}, 200},
		{[]string{"Host", "registry-admin.internal:8081"}, 200}, {[]string{"Host", "Registry-Admin.Internal"}, 200},
		{[]string{"Host", "evil.example"}, 403}, {[]string{"Host", "evil.example:8081"}, 403}, {[]string{"Host", ""}, 403},
		{[]string{"Host", "localhost.evil.example"}, 403}, {[]string{"Host", "127.0.0.1.evil.example"}, 403}, {[]string{"Host", "xlocalhost"}, 403},
		{[]string{"Host", "127.1"}, 403}, {[]string{"Host", "2130706433"}, 403},
		{[]string{"Origin", "http://127.0.0.1:8081"}, 200}, {[]string{"Origin", "http://127.0.0.1:9999"}, 403},
		{[]string{"Origin", "https://evil.example"}, 403}, {[]string{"Origin", "null"}, 403}, {[]string{"Origin", "%zz"}, 403},
		{[]string{"Origin", "https://127.0.0.1:8081"}, 403}, {[]string{"Host", "localhost", "Origin", "https://localhost"}, 403},
		{[]string{"Host", "registry-admin.internal", "Origin", "https://registry-admin.internal"}, 200},
		{[]string{"Host", "registry-admin.internal", "Origin", "ftp://registry-admin.internal"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403}, {[]string{"Sec-Fetch-Site", "same-origin"}, 200}, {[]string{"Sec-Fetch-Site", "none"}, 200},
	} {
		for _, target := range []string{"/livez", "/readyz", "/projection", "/metrics", "/debug/pprof/cmdline"} {
			if status, body, _ := ask(t, h, "GET", target, c.headers...); status != c.status {
				t.Errorf("%q %s: %d %.80s, want %d", c.headers, target, status, body, c.status)
			}
		}
	}
	if status, _, _ := ask(t, newAdmin(t, serve(t)), "GET", "/livez", "Host", ":8081"); status != 403 {
		t.Errorf("an empty name is no configured name: %d", status)
	}
}

// The reason why crossOrigin is not http.CrossOriginProtection: these are refused, and the one of the
// standard library lets them through (Go 1.26).
func TestCrossOriginProtection(t *testing.T) {
	h := newAdmin(t, serve(t))
	for name, c := range map[string]struct {
		method  string
		headers []string
	}{
		"a GET from another site":      {"GET", []string{"Sec-Fetch-Site", "cross-site"}},
		"a GET from another origin":    {"GET", []string{"Origin", "https://evil.example"}},
		"a preflight of another site":  {"OPTIONS", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST"}},
		"another scheme":               {"POST", []string{"Origin", "https://127.0.0.1:8081"}},
		"two headers that disagree":    {"POST", []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://evil.example"}},
		"a name that leads here (DNS)": {"POST", []string{"Host", "evil.example", "Origin", "http://evil.example"}},
	} {
		if status, _, _ := ask(t, h, c.method, "/export", c.headers...); status != 403 {
			t.Errorf("%s: %d", name, status)
		}
	}
}

// What changes something needs a header that makes a browser ask first, and is never told yes.
func TestAdminCommand(t *testing.T) {
	done := 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST /change", command(func(w http.ResponseWriter, _ *http.Request) { done++; plain(w, 200, "done") }))
	h := guard("", requireToken("", mux))
	for _, c := range []struct {
		method  string
		headers []string
		status  int
	}{
		{"POST", []string{"Registry-Admin", "1"}, 200}, {"POST", nil, 403}, {"POST", []string{"Registry-Admin", ""}, 403},
		{"POST", []string{"Registry-Admin", "0"}, 403}, {"POST", []string{"Registry-Admin", "1", "Registry-Admin", "1"}, 403},
		{"POST", []string{"Registry-Admin", "1", "Origin", "http://127.0.0.1:8081"}, 200},
		{"POST", []string{"Registry-Admin", "1", "Origin", "https://evil.example"}, 403},
		{"POST", []string{"Registry-Admin", "1", "Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", []string{"Registry-Admin", "1", "Host", "evil.example"}, 403},
		{"GET", []string{"Registry-Admin", "1"}, 405}, {"PUT", nil, 405},
		{"OPTIONS", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "registry-admin"}, 403},
		{"OPTIONS", []string{"Origin", "http://127.0.0.1:8081", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "registry-admin"}, 405},
	} {
		done = 0
		status, body, header := ask(t, h, c.method, "/change", c.headers...)
		if status != c.status || done != map[bool]int{true: 1}[status == 200] {
			t.Errorf("%s %q: %d %s, done %d times, want %d", c.method, c.headers, status, body, done, c.status)
		}
		if status == 405 && header.Get("Allow") != "POST" {
			t.Errorf("%s: Allow: %q", c.method, header.Get("Allow"))
		}
		for name := range header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s %q: %s", c.method, c.headers, name)
			}
		}
	}
}

// A body that nobody needs is not read.
func TestAdminBody(t *testing.T) {
	h := guard("", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		plain(w, map[bool]int{true: 200, false: 413}[err == nil], "")
	}))
	for _, c := range []struct {
		size   int
		length int64
		status int
	}{{64 << 10, 64 << 10, 200}, {64<<10 + 1, 64<<10 + 1, 413}, {64<<10 + 1, -1, 413}, {64 << 10, -1, 200}} {
		r := httptest.NewRequest("POST", "http://127.0.0.1/", strings.NewReader(strings.Repeat("x", c.size)))
		r.ContentLength = c.length
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != c.status {
			t.Errorf("%+v: %d", c, rec.Code)
		}
	}
}

func TestAdminToken(t *testing.T) {
	h := newAdmin(t, serve(t), func(c *Config) { c.Token = "s3cret" })
	for authorization, status := range map[string]int{
		"": 401, "Bearer": 401, "Bearer ": 401, "Bearer s3cre": 401, "Bearer s3crets": 401, "Basic s3cret": 401, "s3cret": 401,
		"Bearer s3cret": 200, "bearer s3cret": 200,
	} {
		for _, target := range []string{"/projection", "/metrics", "/debug/pprof/cmdline"} {
			got, body, header := ask(t, h, "GET", target, "Authorization", authorization)
			if got != status || status == 401 && (header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(body, "s3c")) {
				t.Errorf("%q %s: %d %.80s", authorization, target, got, body)
			}
		}
		for _, target := range []string{"/livez", "/readyz"} {
			if got, _, _ := ask(t, h, "GET", target, "Authorization", authorization); got != 200 {
				t.Errorf("%q %s: %d", authorization, target, got)
			}
		}
	}
	if got, _, _ := ask(t, h, "GET", "/nope"); got != 401 {
		t.Errorf("an unknown path without the token: %d", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration was accepted")
	}
}

// A profile that takes longer than the server's write timeout arrives: pprof moves the deadline.
func TestProfileOutlastsTheWriteTimeout(t *testing.T) {
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = wire.NewServer(newAdmin(t, serve(t)), nil)
	srv.Config.WriteTimeout = 500 * time.Millisecond // time enough for a busy machine to get to the handler
	srv.Start()
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(srv.URL + "/debug/pprof/trace?seconds=1")
	require.NoError(t, err)
	defer resp.Body.Close()
	profile, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || len(profile) < 100 {
		t.Errorf("%d, %d bytes, %v", resp.StatusCode, len(profile), err)
	}
}

// Tombstones are sent as they are written; where some may be missing there are none.
func TestTombstones(t *testing.T) {
	var err error
	h := newAdmin(t, serve(t), func(c *Config) {
		c.Tombstones = func() (func(io.Writer) error, error) {
			return func(w io.Writer) error { _, err := io.WriteString(w, "a line\n"); return err }, err
		}
	})
	if status, body, header := ask(t, h, "GET", "/tombstones"); status != 200 || body != "a line\n" || header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%d %v %s", status, header, body)
	}
	err = Unavailable("some are missing")
	if status, body, _ := ask(t, h, "GET", "/tombstones"); status != 503 || body != "some are missing\n" {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := ask(t, newAdmin(t, serve(t)), "GET", "/tombstones"); status != 404 {
		t.Errorf("without them %d", status)
	}
}
