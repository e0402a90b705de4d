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

// The paths that need no token, since the supervisor of the process requests them.
const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 64 << 10

// guard protects next from web pages in an operator's browser (httpapi/CONTRACT.md#admin). Host
// reveals a page that points a name of its own at this address; Origin or Sec-Fetch-Site, one that
// sends requests across origins. There is no CORS: a preflight is just a wrong method.
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

// setHeaders sets the headers of every response: no cache stores it, no page frames or embeds it,
// no browser sniffs its type or runs anything in it.
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

// crossOrigin reports whether a browser sent the request for a page of another origin. An https origin
// is this one only for the configured name, which a proxy may serve: the listener itself speaks no TLS.
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

// command wraps the handler of a request with side effects. It requires a header that no form and
// no link can send, and that a page of another origin may not send.
func command(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if values := r.Header["Registry-Admin"]; len(values) != 1 || values[0] != "1" {
			plain(w, http.StatusForbidden, "forbidden: the header Registry-Admin: 1 is required")
			return
		}
		next(w, r)
	}
}

// requireToken only lets probes and requests with the token through; if the token is empty, it lets
// all through. A browser cannot send a bearer token by itself, so the page also takes it as a
// password. Since the password only opens the page, requests that a browser sends by itself have no
// side effects.
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
		got := sha256.Sum256([]byte(shown)) // digests have one length, so timing reveals nothing
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

// tokenOf returns the token of a request: the password, if one is allowed and present, else the
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
