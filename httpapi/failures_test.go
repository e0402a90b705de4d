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

// allowed returns the Allow header of a path.
func allowed(path string) string {
	if strings.HasPrefix(path, "/api/") {
		return "GET"
	}
	return "GET, HEAD"
}

// Any method but GET, and HEAD outside /api/, is 405 on a documented path, whatever the parameters.
func TestOtherMethods(t *testing.T) {
	f := serve(t)
	for _, target := range documented() {
		for _, method := range otherMethods() {
			if method == http.MethodHead && allowed(target) != "GET" {
				continue
			}
			a := f.wantError(t, http.StatusMethodNotAllowed, "Metoda niedozwolona", method, target+"?%zz&limit=0")
			if allow := a.header.Values("Allow"); len(allow) != 1 || allow[0] != allowed(target) {
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

// The order of checking: path, method, rate, parameters, readiness.
func TestOrderOfChecks(t *testing.T) {
	f := serve(t, func(c *Config) { c.RateLimit = 0.001 })
	f.set(func(s *Readiness) { s.Ready = false })
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
	g.set(func(s *Readiness) { s.Ready = false })
	g.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: limit.", http.MethodGet, "/api/scammers?limit=0")
	g.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: limit.", http.MethodGet, "/api/scammers?limit=0", minSeqHeader, "x")
	g.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: Registry-Min-Sequence.", http.MethodGet, "/api/scammers", minSeqHeader, "x")
	g.wantError(t, http.StatusServiceUnavailable, "Trwa wczytywanie danych.", http.MethodGet, "/api/scammers")
}

// What the table does not know is a 500 without detail; what it knows, it knows when wrapped.
func TestFailures(t *testing.T) {
	for err, want := range map[error]*failure{
		errors.New("disk on fire"): errInternal, errGone: errGone, context.Canceled: errBusy, context.DeadlineExceeded: errBusy,
	} {
		if got := failureOf(fmt.Errorf("while reading: %w", err)); got != want {
			t.Errorf("%v: %+v, want %+v", err, got, want)
		}
	}
}

// TestFailsAsPage: where there is a site, people see failures as pages outside /api/; the paths of openapi.yaml fail as JSON.
func TestFailsAsPage(t *testing.T) {
	for _, c := range []struct {
		proofsURL, method, path string
		status                  int
		isPage                  bool
	}{
		{"", http.MethodGet, "/proofs/p-1", 404, true},
		{"https://proofs.example.org/p", http.MethodGet, "/proofs/a.b", 404, true},
		{"https://proofs.example.org/p", http.MethodPost, "/proofs/p-1", 405, false},
		{"", http.MethodPost, "/openapi.yaml", 405, false},
		{"", http.MethodPost, "/robots.txt", 405, true},
		{"", http.MethodPost, "/.well-known/security.txt", 405, true},
		{"", http.MethodPost, "/scammers", 405, true},
		{"", http.MethodGet, "/nope", 404, true},
		{"", http.MethodGet, "/api/nope", 404, false},
	} {
		f := serve(t, func(cfg *Config) { cfg.ProofsURL = c.proofsURL }, withSite)
		a := f.fetch(t, c.method, c.path)
		isPage := strings.HasPrefix(a.header.Get("Content-Type"), "text/html")
		if a.status != c.status || isPage != c.isPage {
			t.Errorf("%s %s, proofs at %q: %d %s", c.method, c.path, c.proofsURL, a.status, a.header.Get("Content-Type"))
		}
	}
}

// failing is a Reader that panics.
type failing struct{ value any }

func (f failing) View() *readmodel.View { panic(f.value) }

func (f failing) Await(context.Context, uint64) (*readmodel.View, error) { panic(f.value) }
