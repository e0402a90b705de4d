package httpapi

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func TestPreflight(t *testing.T) {
	f := serve(t)
	for _, target := range documented() {
		for _, origin := range []string{"https://reader.example", "null"} {
			a := f.ask(t, http.MethodOptions, target, "Origin", origin, "Access-Control-Request-Method", "GET",
				"Access-Control-Request-Headers", "registry-min-sequence")
			for name, want := range map[string]string{
				"Access-Control-Allow-Origin": "*", "Access-Control-Max-Age": "86400", "Access-Control-Allow-Methods": "GET",
				"Access-Control-Allow-Headers": "*", "Allow": "", "Vary": "",
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

// A preflight is answered with these bytes for every client: clients and caches have seen them.
func TestPreflightOnTheWire(t *testing.T) {
	f := serve(t)
	const (
		head = "HTTP/1.1 204 No Content\r\n" +
			"Access-Control-Allow-Headers: *\r\n" +
			"Access-Control-Allow-Methods: GET\r\n" +
			"Access-Control-Allow-Origin: *\r\n" +
			"Access-Control-Expose-Headers: Registry-Sequence, Registry-As-Of, Registry-Index-Sequence, Registry-Error, ETag, Retry-After\r\n" +
			"Access-Control-Max-Age: 86400\r\n"
		sandbox = "Content-Security-Policy: default-src 'none'; sandbox\r\n"
		rest    = "X-Content-Type-Options: nosniff\r\nX-Robots-Tag: noindex, nofollow\r\n"
	)
	date := regexp.MustCompile("Date: [^\r]*\r\n")
	for _, target := range documented() {
		want := head + rest + "Connection: close\r\n\r\n"
		if strings.HasPrefix(target, "/api/chat/avatar/") {
			want = head + sandbox + rest + "Connection: close\r\n\r\n"
		}
		for _, origin := range []string{"https://reader.example", "null", "https://other.example", "http://", "x"} {
			got := f.rawRequest(t, "OPTIONS "+target+" HTTP/1.1\r\nOrigin: "+origin+"\r\nAccess-Control-Request-Method: PUT\r\n"+closing)
			if got = date.ReplaceAllString(got, ""); got != want {
				t.Errorf("%s from %s:\n%s\nwant\n%s", target, origin, got, want)
			}
		}
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
				"Access-Control-Expose-Headers":    "Registry-Sequence, Registry-As-Of, Registry-Index-Sequence, Registry-Error, ETag, Retry-After",
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
