package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/semaphore"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/readmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the public API before a real read model.
type fixture struct {
	model    *readmodel.Model
	render   *readmodel.Renderer
	state    atomic.Pointer[Readiness]
	public   *Public
	registry *prometheus.Registry
	log      *eventstest.Log
	addr     string
	client   *http.Client
	contract *contract
}

func asOf() time.Time { return apitest.AsOf() }

// serve starts the API over apitest.People. It is ready and not frozen.
func serve(t testing.TB, mutate ...func(*Config)) *fixture {
	t.Helper()
	f := newFixture(t, mutate...)
	f.addr = listen(t, NewServer(f.public, 0, f.public.logger))
	t.Cleanup(f.public.EndFollowing) // first: the server waits for polls
	f.client.Transport = &http.Transport{DisableCompression: true}
	t.Cleanup(f.client.CloseIdleConnections)
	return f
}

// newFixture is serve without a network. In a bubble of testing/synctest, a time limit then ends only if the test waits for it.
func newFixture(t testing.TB, mutate ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{
		model: readmodel.New(), render: readmodel.NewRenderer(), registry: prometheus.NewRegistry(),
		log: &eventstest.Log{}, contract: newContract(t), addr: "registry.example",
	}
	f.state.Store(&Readiness{Ready: true, AsOf: asOf()})
	f.model.NameFeed(apitest.Epoch)
	f.apply(apitest.People()...)
	cfg := Config{
		Health:   &Health{Reader: f.model, Readiness: func() Readiness { return *f.state.Load() }},
		Logger:   slog.New(slog.NewTextHandler(f.log, nil)),
		Metrics:  f.registry,
		AsyncAPI: []byte("asyncapi: 3.0.0\n"), ProofsURL: "https://proofs.example.org/p",
		StaleIfError: time.Hour, MaxFollowers: 1000, Ranked: func() RankedIndex { return scan{f.model.View().Sequence()} },
	}
	for _, m := range mutate {
		m(&cfg)
	}
	public, err := NewPublic(cfg)
	require.NoError(t, err)
	f.public = public
	t.Cleanup(public.Close)
	f.client = &http.Client{
		Timeout:       time.Minute, // no test waits forever
		Transport:     direct{public},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// direct passes requests to a handler of this process.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	in := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.RequestURI(), nil)
	in.Header = r.Header
	w := httptest.NewRecorder()
	d.ServeHTTP(w, in)
	return w.Result(), nil
}

// listen serves on a free port until the test ends, and waits for the end.
func listen(t testing.TB, srv *http.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, done := l.Addr().String(), make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(LimitConnections(l, 0, nil, func() {})) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-done
	})
	return address
}

// apply applies events as the projector does, one a sequence.
func (f *fixture) apply(data ...events.Data) {
	seq := f.model.View().Sequence()
	records := make([]readmodel.Record, len(data))
	for i, d := range data {
		seq++
		records[i] = f.render.Render(seq, events.Revised(d, int64(seq)))
	}
	f.model.Apply(records, seq)
}

func (f *fixture) set(change func(*Readiness)) {
	s := *f.state.Load()
	change(&s)
	f.state.Store(&s)
}

// boundSearches lets one text search run, and so many wait; nobody asks anything yet.
func (f *fixture) boundSearches(waiting int) {
	f.public.searches = &turns{semaphore.NewWeighted(1), newPlaces(waiting)}
}

// response is a response with its body.
type response struct {
	path   string // asked for, decoded
	status int
	header http.Header
	raw    []byte // as sent
	body   string // decoded
}

func (a *response) statusText() string { return strconv.Itoa(a.status) }

// ask sends one request and holds the answer against openapi.yaml. Headers are pairs.
func (f *fixture) ask(t testing.TB, method, target string, headers ...string) *response {
	t.Helper()
	a := f.fetch(t, method, target, headers...)
	f.contract.check(t, method, a.path, a)
	return a
}

// fetch is ask of what is no part of the API, such as a page.
func (f *fixture) fetch(t testing.TB, method, target string, headers ...string) *response {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+f.addr+target, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := f.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	a := &response{path: req.URL.Path, status: resp.StatusCode, header: resp.Header}
	if a.raw, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	a.body = decoded(t, resp.Header.Get("Content-Encoding"), a.raw)
	return a
}

func (f *fixture) get(t testing.TB, target string, headers ...string) *response {
	t.Helper()
	return f.ask(t, http.MethodGet, target, headers...)
}

// wantError asks and compares status and text.
func (f *fixture) wantError(t testing.TB, status int, text, method, target string, headers ...string) *response {
	t.Helper()
	a := f.ask(t, method, target, headers...)
	want := `{"error":"` + text + `"}`
	if method == http.MethodHead {
		want = ""
	}
	if a.status != status || a.body != want {
		t.Errorf("%s %s: %d %s, want %d %s", method, target, a.status, a.body, status, want)
	}
	return a
}
