package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// The paths that need no token: the supervisor that keeps the process running asks for them.
const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 64 << 10

// guard keeps pages in an operator's browser away from next (httpapi/CONTRACT.md#admin). A page
// that points a name of its own at this address is recognized by Host, one that sends requests
// across origins by Origin or Sec-Fetch-Site. There is no CORS: a preflight is just a wrong method.
func guard(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		switch {
		case !ownHost(r.Host, name):
			plain(w, http.StatusForbidden, "forbidden: address this listener by IP address, as localhost or by its configured name")
		case crossOrigin(r, name):
			plain(w, http.StatusForbidden, "forbidden: request from another site")
		case r.ContentLength > maxBody:
			plain(w, http.StatusRequestEntityTooLarge, "the body is too long: 64 KiB at most")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			next.ServeHTTP(w, r)
		}
	})
}

// setHeaders sets what every answer carries: no cache stores it, no page frames or embeds it, no
// browser sniffs its type or runs anything in it.
func setHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// ownHost reports whether a Host header is an IP literal, localhost or the configured name.
func ownHost(host, name string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return strings.EqualFold(host, "localhost") || name != "" && strings.EqualFold(host, name)
}

// crossOrigin reports whether a browser sent the request for a page of another origin. This
// listener speaks no TLS; a proxy that does can only stand in front of the configured name.
func crossOrigin(r *http.Request, name string) bool {
	if slices.Contains(r.Header["Sec-Fetch-Site"], "cross-site") {
		return true
	}
	for _, origin := range r.Header["Origin"] {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
		proxied := u.Scheme == "https" && name != "" && strings.EqualFold(u.Hostname(), name)
		if u.Scheme != "http" && !proxied {
			return true
		}
	}
	return false
}

// command wraps the handler of a request that changes something. It requires a header that no form
// and no link can send, and that a page of another origin may not.
func command(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if values := r.Header["Registry-Admin"]; len(values) != 1 || values[0] != "1" {
			plain(w, http.StatusForbidden, "forbidden: the header Registry-Admin: 1 is required")
			return
		}
		next(w, r)
	}
}

// requireToken lets only probes and requests with the token through; an empty token lets all. A
// browser cannot send a bearer token, so the page also takes it as a password. Since that opens the
// page alone, what a browser sends by itself cannot change anything.
func requireToken(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := false
		switch r.URL.Path {
		case livePath, readyPath:
			next.ServeHTTP(w, r)
			return
		case pagePath, sitePath, stylePath, scriptPath:
			page = true
		}
		shown, ok := tokenOf(r, page)
		got := sha256.Sum256([]byte(shown)) // digests have one length, so the time taken tells nothing
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 && ok {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Add("WWW-Authenticate", "Bearer")
		if page {
			w.Header().Add("WWW-Authenticate", `Basic realm="registry: any user, the token as password", charset="UTF-8"`)
		}
		plain(w, http.StatusUnauthorized, "unauthorized: a bearer token is required")
	})
}

// tokenOf returns the token of a request: a password if that is allowed and there is one, else the
// bearer token.
func tokenOf(r *http.Request, password bool) (token string, ok bool) {
	if password {
		if _, token, ok := r.BasicAuth(); ok {
			return token, true
		}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}
