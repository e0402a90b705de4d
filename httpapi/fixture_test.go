package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the public API on a real listener, before a real read model.
type fixture struct {
	model    *readmodel.Model
	render   *readmodel.Renderer
	state    atomic.Pointer[State]
	public   *Public
	registry *prometheus.Registry
	log      *logBuffer
	addr     string
	client   *http.Client
	contract *contract
}

// asOf is when the fixture's model was last known to be complete.
func asOf() time.Time { return time.Date(2026, 11, 21, 10, 15, 0, 7_000_000, time.UTC) }

// serve starts the API over the people of people(). It is ready and not frozen.
func serve(t testing.TB, mutate ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{
		model: readmodel.New(), render: readmodel.NewRenderer(), registry: prometheus.NewRegistry(),
		log: &logBuffer{}, contract: newContract(t),
	}
	f.state.Store(&State{Ready: true, AsOf: asOf()})
	f.apply(people()...)
	cfg := Config{
		Health:   &Health{Reader: f.model, State: func() State { return *f.state.Load() }},
		Logger:   slog.New(slog.NewTextHandler(f.log, nil)),
		Metrics:  f.registry,
		AsyncAPI: []byte("asyncapi: 3.0.0\n"), ProofsURL: "https://proofs.example.org/p/",
	}
	for _, m := range mutate {
		m(&cfg)
	}
	public, err := NewPublic(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f.public = public
	t.Cleanup(public.Close)
	f.addr = listen(t, NewServer(public, cfg.Logger))
	f.client = &http.Client{
		Transport:     &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(f.client.CloseIdleConnections)
	return f
}

// listen serves on a free port until the test ends, and waits for the end.
func listen(t testing.TB, srv *http.Server) string {
	t.Helper()
	return listenOver(t, srv, func(l net.Listener) net.Listener { return LimitConnections(l, 0) })
}

// listenOver is listen over another kind of connections. nil: net/http's own.
func listenOver(t testing.TB, srv *http.Server, wrap func(net.Listener) net.Listener) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, done := l.Addr().String(), make(chan struct{})
	if wrap != nil {
		l = wrap(l)
	}
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-done
	})
	return address
}

// apply is what the projector does: one event a sequence.
func (f *fixture) apply(data ...events.Data) {
	seq := f.model.View().Sequence()
	records := make([]readmodel.Record, len(data))
	for i, d := range data {
		seq++
		records[i] = f.render.Render(seq, d)
	}
	f.model.Apply(records, seq)
}

func (f *fixture) set(change func(*State)) {
	s := *f.state.Load()
	change(&s)
	f.state.Store(&s)
}

// answer is what a reader got.
type answer struct {
	path   string // asked for, decoded
	status int
	header http.Header
	raw    []byte // as sent
	body   string // decoded
}

func (a *answer) statusText() string { return strconv.Itoa(a.status) }

// ask sends one request and holds the answer against openapi.yaml. Headers are pairs.
func (f *fixture) ask(t testing.TB, method, target string, headers ...string) *answer {
	t.Helper()
	a := f.fetch(t, method, target, headers...)
	f.contract.check(t, method, a.path, a)
	return a
}

// fetch is ask of what is no part of the API, such as a page.
func (f *fixture) fetch(t testing.TB, method, target string, headers ...string) *answer {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+f.addr+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := f.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a := &answer{path: req.URL.Path, status: resp.StatusCode, header: resp.Header}
	if a.raw, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	a.body = decoded(t, resp.Header.Get("Content-Encoding"), a.raw)
	return a
}

func (f *fixture) get(t testing.TB, target string, headers ...string) *answer {
	t.Helper()
	return f.ask(t, http.MethodGet, target, headers...)
}

// wantError asks and compares status and text.
func (f *fixture) wantError(t testing.TB, status int, text, method, target string, headers ...string) *answer {
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

// logBuffer is a log that tests may read while handlers write.
type logBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// people is a small registry in which every filter and order says something.
func people() []events.Data {
	at := func(day int) time.Time { return time.Date(2026, 3, day, 12, 0, 0, 0, time.UTC) }
	entry := func(l events.List, id, chat, name, reason string, verified bool, proofs events.Proofs, day int) events.Data {
		return events.Entry{List: l, EntryID: id, ChatID: chat, Name: name, Reason: reason, Verified: verified,
			Proofs: proofs, ReportID: "R-" + id, ReportedAt: at(day)}
	}
	none, private := events.Proofs{}, events.Proofs{Private: true}
	views := func(l events.List, id string, n int64) events.Data {
		return events.Views{List: l, EntryID: id, Views: n}
	}
	return []events.Data{
		entry(events.Scammers, "s1", "100000000000000001", "Zenon Łotr", "Bierze **zaliczki** i znika.", true, events.Proofs{ID: "p-1"}, 1),
		entry(events.Scammers, "s2", "100000000000000002", "Ćma", "Podszywa się pod *admina*: [strona](https://example.org/x)", false, none, 2),
		entry(events.Scammers, "s3", "100000000000000003", "adam <b>", "Kradzież kont", true, private, 3),
		entry(events.Scammers, "s4", "100000000000000003", "Celina", "To samo konto co adam", false, events.Proofs{ID: "p-4"}, 4),
		entry(events.Servers, "g1", "200000000000000001", "Darmowe Nitro", "Phishing", true, none, 5),
		entry(events.Servers, "g2", "200000000000000002", "Żabka giveaway", "", false, private, 6),
		entry(events.Legit, "l1", "300000000000000001", "Ewa Zaufana", "Pośredniczka", true, none, 7),
		entry(events.Legit, "l2", "300000000000000002", "Celina Czeka", "Jeszcze niesprawdzona", false, none, 8),
		entry(events.Legit, "l3", "100000000000000001", "Zenon Łotr", "Dawne konto", true, none, 9),
		views(events.Scammers, "s1", 10), views(events.Scammers, "s3", 300), views(events.Scammers, "s4", 20),
		views(events.Servers, "g2", 7),
		events.Donation{DonationID: "d-1", Status: events.DonationConfirming, Amount: "25.50", Currency: "LTC",
			Confirmations: 2, RequiredConfirmations: 6, CreatedAt: at(1), UpdatedAt: at(1).Add(90 * time.Second)},
	}
}
