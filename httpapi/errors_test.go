package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"example.org/registry/readmodel"
)

// documented is a target of every documented path.
func documented() []string {
	return []string{
		"/api/scammers", "/api/servers", "/api/legit", "/api/check", "/api/status", "/api/donate/status",
		"/api/chat/avatar/1", "/openapi.yaml", "/asyncapi.yaml", "/proofs/p-1",
	}
}

func otherMethods() []string {
	return []string{
		http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
		http.MethodTrace, "PROPFIND", "get", "Get", "X",
	}
}

// Any method but GET is 405 on a documented path, whatever the parameters.
func TestOtherMethods(t *testing.T) {
	f := serve(t)
	for _, target := range documented() {
		for _, method := range otherMethods() {
			a := f.wantError(t, http.StatusMethodNotAllowed, "Metoda niedozwolona", method, target+"?%zz&limit=0")
			if allow := a.header.Values("Allow"); len(allow) != 1 || allow[0] != "GET" {
				t.Errorf("%s %s: Allow %q", method, target, allow)
			}
		}
	}
}

// An unknown path is 404 whatever the method, preflights included.
func TestUnknownPaths(t *testing.T) {
	f := serve(t)
	for _, path := range []string{
		"/", "/api", "/api/", "/api/scammers/", "//api/scammers", "/api//scammers", "/api/Scammers", "/API/scammers",
		"/api/scammers/1", "/api/./scammers/", "/api/scammers%2F", "/api/chat/avatar", "/api/chat/avatar/", "/api/chat/avatar/1/2",
		"/api/chat/avatar/a%2Fb", "/proofs", "/proofs/", "/proofs/a/b", "/openapi.yml", "/api/openapi.yaml", "/index.html", "/%00", "/api/%FF",
	} {
		for _, method := range append(otherMethods(), http.MethodGet) {
			f.wantError(t, http.StatusNotFound, "Nie znaleziono.", method, path+"?%zz",
				"Origin", "https://reader.example", "Access-Control-Request-Method", "GET")
		}
	}
}

func TestPreflight(t *testing.T) {
	f := serve(t)
	for _, target := range documented() {
		for _, origin := range []string{"https://reader.example", "null", "http://" + f.addr} {
			a := f.ask(t, http.MethodOptions, target, "Origin", origin, "Access-Control-Request-Method", "GET",
				"Access-Control-Request-Headers", "registry-min-sequence")
			for name, want := range map[string]string{
				"Access-Control-Allow-Origin": "*", "Access-Control-Max-Age": "86400", "Access-Control-Allow-Methods": "GET",
				"Access-Control-Allow-Headers": "Registry-Min-Sequence, If-None-Match", "Allow": "", "Vary": "",
				"Access-Control-Allow-Credentials": "",
			} {
				if got := a.header.Get(name); got != want {
					t.Errorf("%s from %s: %s: %q, want %q", target, origin, name, got, want)
				}
			}
			if a.status != http.StatusNoContent || a.body != "" {
				t.Errorf("%s from %s: %d %q", target, origin, a.status, a.body)
			}
		}
		// Half a preflight is just another method.
		f.wantError(t, http.StatusMethodNotAllowed, "Metoda niedozwolona", http.MethodOptions, target, "Origin", "https://reader.example")
		f.wantError(t, http.StatusMethodNotAllowed, "Metoda niedozwolona", http.MethodOptions, target, "Access-Control-Request-Method", "GET")
	}
}

// CORS is open on every answer, with an Origin or without, and never depends on it.
func TestEveryAnswerIsOpen(t *testing.T) {
	f := serve(t)
	for _, headers := range [][]string{nil, {"Origin", "https://reader.example"}, {"Origin", "http://" + f.addr}} {
		for _, target := range append(documented(), "/nope", "/api/scammers?limit=0", "/api/check?search=adam") {
			a := f.get(t, target, headers...)
			for name, want := range map[string]string{
				"Access-Control-Allow-Origin":      "*",
				"Access-Control-Expose-Headers":    "Registry-Sequence, Registry-As-Of, ETag, Retry-After",
				"Access-Control-Allow-Credentials": "",
				"X-Content-Type-Options":           "nosniff",
				"X-Robots-Tag":                     "noindex, nofollow",
			} {
				if got := strings.Join(a.header.Values(name), "|"); got != want {
					t.Errorf("%s: %s: %q, want %q", target, name, got, want)
				}
			}
			if vary := a.header.Get("Vary"); strings.Contains(vary, "Origin") {
				t.Errorf("%s: Vary %q", target, vary)
			}
		}
	}
}

// The order of checking: path, method, rate, parameters, readiness.
func TestOrderOfChecks(t *testing.T) {
	f := serve(t, func(c *Config) { c.RateLimit = 0.001 })
	f.set(func(s *State) { s.Ready = false })
	const bad = "?limit=0&search=%FF"
	f.wantError(t, http.StatusNotFound, "Nie znaleziono.", http.MethodPost, "/api/nope"+bad)
	f.wantError(t, http.StatusMethodNotAllowed, "Metoda niedozwolona", http.MethodPost, "/api/scammers"+bad)
	f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: search.", http.MethodGet, "/api/scammers"+bad) // the burst
	a := f.wantError(t, http.StatusTooManyRequests, "Zbyt wiele zapytań.", http.MethodGet, "/api/scammers"+bad)
	if got := a.header.Get("Retry-After"); got != "1000" {
		t.Errorf("Retry-After %q", got)
	}
	f.wantError(t, http.StatusNotFound, "Nie znaleziono.", http.MethodGet, "/api/nope"+bad)
	f.wantError(t, http.StatusMethodNotAllowed, "Metoda niedozwolona", http.MethodPost, "/api/scammers"+bad)

	g := serve(t)
	g.set(func(s *State) { s.Ready = false })
	g.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: limit.", http.MethodGet, "/api/scammers?limit=0")
	g.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: limit.", http.MethodGet, "/api/scammers?limit=0", minSeqHeader, "x")
	g.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: Registry-Min-Sequence.", http.MethodGet, "/api/scammers", minSeqHeader, "x")
	g.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/scammers")
}

// What the table does not know is a 500 without detail; what it knows, it knows when wrapped.
func TestErrorTable(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("while reading: %w", err) }
	for _, c := range []struct {
		err  error
		want reply
	}{
		{errors.New("disk on fire"), reply{500, "Błąd podczas pobierania danych.", ""}},
		{&panicError{value: "x"}, reply{500, "Błąd podczas pobierania danych.", ""}},
		{wrap(errNotFound), reply{404, "Nie znaleziono.", ""}},
		{wrap(errMethod), reply{405, "Metoda niedozwolona", ""}},
		{wrap(invalid("skip")), reply{400, "Nieprawidłowy parametr: skip.", ""}},
		{wrap(missing("id")), reply{400, "Brak wymaganego parametru: id.", ""}},
		{wrap(&rateError{"7"}), reply{429, "Zbyt wiele zapytań.", "7"}},
		{wrap(notReady("why")), reply{503, "Trwa wczytywanie danych.", "5"}},
		{wrap(errBehind), reply{503, "Trwa wczytywanie danych.", "1"}},
		{wrap(errBusy), reply{503, "Serwer jest przeciążony.", "1"}},
		{wrap(context.Canceled), reply{503, "Serwer jest przeciążony.", "1"}},
	} {
		if got := replyTo(c.err); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.err, got, c.want)
		}
	}
}

// failing is a Reader that panics.
type failing struct{ value any }

func (f failing) View() *readmodel.View { panic(f.value) }

func (f failing) Await(context.Context, uint64) (*readmodel.View, error) { panic(f.value) }

// A panic is a 500 whose detail is in the log alone, and the next request is answered.
func TestPanic(t *testing.T) {
	f := serve(t, func(c *Config) { c.Health.Reader = failing{"secret detail"} })
	for range 3 {
		a := f.wantError(t, http.StatusInternalServerError, "Błąd podczas pobierania danych.",
			http.MethodGet, "/api/scammers?search=adamowski&id=123456")
		if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Retry-After") != "" {
			t.Errorf("headers %v", a.header)
		}
	}
	log := f.log.String()
	for want, wanted := range map[string]bool{
		"secret detail": true, "route=/api/scammers": true, "health.go": true, // with the stack
		"adamowski": false, "123456": false, "127.0.0.1": false,
	} {
		if strings.Contains(log, want) != wanted {
			t.Errorf("log contains %q: %v", want, !wanted)
		}
	}
	if n := f.public.metrics.inFlight.Load(); n != 0 {
		t.Errorf("%d requests in flight", n)
	}
	f.get(t, "/openapi.yaml")
}

// A handler may cut the connection, and nothing is logged.
func TestAbort(t *testing.T) {
	f := serve(t, func(c *Config) { c.Health.Reader = failing{http.ErrAbortHandler} })
	if resp, err := f.client.Get("http://" + f.addr + "/api/scammers"); err == nil {
		_ = resp.Body.Close()
		t.Errorf("status %d, want the connection cut", resp.StatusCode)
	}
	if log := f.log.String(); log != "" {
		t.Errorf("logged: %s", log)
	}
}
