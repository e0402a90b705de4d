package httpapi

import (
	"regexp"
	"strings"
	"testing"
)

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
