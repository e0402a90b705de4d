package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// admin asks the admin listener's handler. Headers are pairs; Host is one of them.
func admin(t testing.TB, h http.Handler, method, target string, headers ...string) (int, string, http.Header) {
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

func newAdmin(t testing.TB, f *fixture, mutate ...func(*AdminConfig)) http.Handler {
	t.Helper()
	cfg := AdminConfig{Health: f.public.admitter.health, Gatherer: f.registry,
		Projection: func() Projection { return ProjectionOf(f.model.View()) }}
	for _, m := range mutate {
		m(&cfg)
	}
	h, err := NewAdmin(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// /readyz is 200 exactly when lists are answered, and says by name why it is not.
func TestReadyz(t *testing.T) {
	for name, c := range map[string]struct {
		config func(*Config)
		state  State
		status int
		body   string
	}{
		"caught up":   {nil, State{Ready: true}, 200, "ok\n"},
		"frozen":      {nil, State{Ready: true, Frozen: true}, 200, "ok\n"},
		"loading":     {nil, State{}, 503, "not caught up with the stream\n"},
		"by name":     {nil, State{Reason: "the broker is away and nothing is saved"}, 503, "the broker is away and nothing is saved\n"},
		"stale":       {func(c *Config) { c.Health.MaxStaleness = time.Hour }, State{Ready: true, AsOf: asOf().AddDate(-5, 0, 0)}, 503, "out of touch with the stream since 2021-11-21T10:15:00.007Z\n"},
		"few entries": {func(c *Config) { c.Health.MinEntries = 9 }, State{Ready: true}, 503, "8 entries, fewer than the 9 required\n"},
	} {
		f := serve(t, func(cfg *Config) {
			if c.config != nil {
				c.config(cfg)
			}
		})
		f.state.Store(&c.state)
		h := newAdmin(t, f)
		if status, body, _ := admin(t, h, "GET", "/readyz"); status != c.status || body != c.body {
			t.Errorf("%s: %d %q", name, status, body)
		}
		if a := f.get(t, "/api/scammers"); a.status != c.status {
			t.Errorf("%s: lists are %d", name, a.status)
		}
		if status, body, _ := admin(t, h, "GET", "/livez"); status != 200 || body != "ok\n" {
			t.Errorf("%s: /livez %d %q", name, status, body)
		}
	}
}

// While the process stops, nobody is sent here any more, but who is here is answered.
func TestReadyzStopping(t *testing.T) {
	f := serve(t)
	f.set(func(s *State) { s.Stopping = true })
	if status, body, _ := admin(t, newAdmin(t, f), "GET", "/readyz"); status != 503 || body != "stopping\n" {
		t.Errorf("/readyz: %d %q", status, body)
	}
	if a := f.get(t, "/api/scammers"); a.status != 200 {
		t.Errorf("lists are %d", a.status)
	}
}

func TestProjectionDocument(t *testing.T) {
	f := serve(t)
	sentence := "the broker is away"
	for file, p := range map[string]func() Projection{
		"projection": func() Projection {
			p := ProjectionOf(f.model.View())
			p.Stream, p.StreamEpoch, p.StreamCreated = "REGISTRY", "e1", asOf()
			p.LastSequence, p.Lag, p.LagSeconds, p.CaughtUp = 20, 6, 0.25, true
			p.Rejected, p.SnapshotSequence, p.LastError = 1, 12, &sentence
			p.Rebuilding = &Rebuilding{Done: 5, Total: 20, PerSecond: 1000, ETASeconds: 0.015}
			p.SubjectsWithoutValidEvent = []string{"registry.scammers.x"}
			return p
		},
		"projection_zero": func() Projection { return Projection{} },
	} {
		status, body, header := admin(t, newAdmin(t, f, func(c *AdminConfig) { c.Projection = p }), "GET", "/projection")
		if status != 200 || header.Get("Content-Type") != "application/json; charset=utf-8" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", status, header)
		}
		golden(t, file, strings.TrimSuffix(body, "\n"))
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &members); err != nil {
			t.Fatal(err)
		}
		want := strings.Fields(`caughtUp checkpoint digest entries indexSequence lag lagSeconds lastError lastSequence
			rebuilding rejected snapshotSequence stream streamCreated streamEpoch subjectsWithoutValidEvent`)
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

// Whenever lists are 503, the document says why (API contract, operators).
func TestProjectionSaysWhy(t *testing.T) {
	cause := "The broker cannot be reached."
	for name, c := range map[string]struct {
		config func(*Config)
		state  State
		cause  *string
		want   string
	}{
		"few":              {func(c *Config) { c.Health.MinEntries = 999 }, State{Ready: true, AsOf: asOf()}, nil, "8 entries, fewer than the 999 required"},
		"stale":            {func(c *Config) { c.Health.MaxStaleness = time.Hour }, State{Ready: true, AsOf: asOf().AddDate(-5, 0, 0)}, &cause, "out of touch with the stream since 2021-11-21T10:15:00.007Z: The broker cannot be reached."},
		"loading":          {nil, State{Reason: cause}, &cause, cause},
		"loading, unnamed": {nil, State{}, nil, "not caught up with the stream"},
	} {
		f := serve(t, func(cfg *Config) {
			if c.config != nil {
				c.config(cfg)
			}
		})
		f.state.Store(&c.state)
		h := newAdmin(t, f, func(cfg *AdminConfig) {
			cfg.Health = f.public.admitter.health
			cfg.Projection = func() Projection { return Projection{LastError: c.cause} }
		})
		_, body, _ := admin(t, h, "GET", "/projection")
		var got Projection
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.LastError == nil || *got.LastError != c.want {
			t.Errorf("%s: %s (%v), want %q", name, body, err, c.want)
		}
	}
}

func TestAdminPaths(t *testing.T) {
	f := serve(t)
	h := newAdmin(t, f)
	f.get(t, "/api/scammers")
	for target, want := range map[string]string{
		"/metrics": "registry_http_requests_total{route=\"/api/scammers\",status=\"200\"} 1", "/debug/pprof/": "goroutine",
		"/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/pprof/cmdline": "httpapi", "/projection": `"checkpoint":14`,
	} {
		if status, body, _ := admin(t, h, "GET", target); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", target, status, body)
		}
	}
	for _, target := range []string{"/nope", "/api/scammers", "/snapshots", "/rebuild", "/export", "/metrics/"} {
		for _, method := range []string{"GET", "POST"} {
			if status, _, _ := admin(t, h, method, target, "Registry-Admin", "1"); status != 404 {
				t.Errorf("%s %s: %d", method, target, status)
			}
		}
	}
	for _, target := range []string{"/livez", "/readyz", "/projection", "/metrics", "/debug/pprof/"} {
		if status, _, header := admin(t, h, "POST", target); status != 405 || header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d %q", target, status, header.Get("Allow"))
		}
	}
}

// A page in an operator's browser reaches nothing, by whatever name it calls this address.
func TestAdminGuard(t *testing.T) {
	h := newAdmin(t, serve(t), func(c *AdminConfig) { c.Host = "registry-admin.internal" })
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
			if status, body, _ := admin(t, h, "GET", target, c.headers...); status != c.status {
				t.Errorf("%q %s: %d %.80s, want %d", c.headers, target, status, body, c.status)
			}
		}
	}
	if status, _, _ := admin(t, newAdmin(t, serve(t)), "GET", "/livez", "Host", ":8081"); status != 403 {
		t.Errorf("an empty name is no configured name: %d", status)
	}
}

// What changes something needs a header that makes a browser ask first, and is never told yes.
func TestAdminCommand(t *testing.T) {
	cfg := AdminConfig{}
	done := 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST /change", command(func(w http.ResponseWriter, _ *http.Request) { done++; plain(w, 200, "done") }))
	h := guard(cfg.Host, cfg.withToken(mux))
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
		status, body, header := admin(t, h, c.method, "/change", c.headers...)
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
	h := newAdmin(t, serve(t), func(c *AdminConfig) { c.Token = "s3cret" })
	for authorization, status := range map[string]int{
		"": 401, "Bearer": 401, "Bearer ": 401, "Bearer s3cre": 401, "Bearer s3crets": 401, "Basic s3cret": 401, "s3cret": 401,
		"Bearer s3cret": 200, "bearer s3cret": 200,
	} {
		for _, target := range []string{"/projection", "/metrics", "/debug/pprof/cmdline"} {
			got, body, header := admin(t, h, "GET", target, "Authorization", authorization)
			if got != status || status == 401 && (header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(body, "s3c")) {
				t.Errorf("%q %s: %d %.80s", authorization, target, got, body)
			}
		}
		for _, target := range []string{"/livez", "/readyz"} {
			if got, _, _ := admin(t, h, "GET", target, "Authorization", authorization); got != 200 {
				t.Errorf("%q %s: %d", authorization, target, got)
			}
		}
	}
	if got, _, _ := admin(t, h, "GET", "/nope"); got != 401 {
		t.Errorf("an unknown path without the token: %d", got)
	}
}

func TestAdminConfigIsChecked(t *testing.T) {
	if _, err := NewAdmin(AdminConfig{}); err == nil {
		t.Error("an empty configuration was accepted")
	}
}

// A profile that takes longer than the server's write timeout arrives: pprof moves the deadline.
func TestProfileOutlastsTheWriteTimeout(t *testing.T) {
	srv := NewServer(newAdmin(t, serve(t)), nil)
	srv.WriteTimeout = 500 * time.Millisecond // time enough for a busy machine to get to the handler
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + listen(t, srv) + "/debug/pprof/trace?seconds=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	profile, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || len(profile) < 100 {
		t.Errorf("%d, %d bytes, %v", resp.StatusCode, len(profile), err)
	}
}
