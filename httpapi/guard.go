package httpapi

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

// The paths that are asked without a token: by what keeps the process running.
const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

// maxAdminBody is how many bytes the body of a request to the admin listener may have.
const maxAdminBody = 64 << 10

// guard keeps pages in an operator's browser away from the admin listener: a page that points its
// own name at this address is seen by Host, one that asks across origins by Origin or
// Sec-Fetch-Site (API contract, operators). There is no CORS, so a preflight is a wrong method.
func guard(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		private(w.Header())
		switch {
		case !ownHost(r.Host, name):
			plain(w, http.StatusForbidden, "forbidden: address this listener by IP address, as localhost or by its configured name")
		case foreign(r, name):
			plain(w, http.StatusForbidden, "forbidden: request from another site")
		case r.ContentLength > maxAdminBody:
			plain(w, http.StatusRequestEntityTooLarge, "the body is too long: 64 KiB at most")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxAdminBody)
			next.ServeHTTP(w, r)
		}
	})
}

// private sets what every answer of the admin listener has: no cache keeps it, no page frames or
// embeds it, no browser takes it for another type than it says, or runs anything in it.
func private(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// command is the handler of a request that changes something. It asks for a header that no form and
// no link can send, and that no page of another origin may (API contract, operators).
func command(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if values := r.Header["Registry-Admin"]; len(values) != 1 || values[0] != "1" {
			plain(w, http.StatusForbidden, "forbidden: the header Registry-Admin: 1 is required")
			return
		}
		next(w, r)
	}
}

// ownHost says whether a Host header is an IP literal, localhost or the configured name.
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

// foreign says whether a browser sent the request for a page of another site. This listener speaks no TLS; only under the
// configured name can a proxy stand in front of it that does.
func foreign(r *http.Request, name string) bool {
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

// withToken lets through who shows the token, and the probes. A browser cannot send a bearer token,
// so for the page alone the token is also a password: what a browser sends by itself then opens
// nothing that changes anything. Digests are compared, so the time taken tells neither the token nor
// its length.
func (cfg *AdminConfig) withToken(next http.Handler) http.Handler {
	if cfg.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(cfg.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := false
		switch r.URL.Path {
		case livePath, readyPath:
			next.ServeHTTP(w, r)
			return
		case pagePath, stylePath, scriptPath:
			page = true
		}
		token, shown := shownToken(r, page)
		got := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 && shown {
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

// shownToken is the token of a request, from a password only where that is allowed.
func shownToken(r *http.Request, password bool) (token string, ok bool) {
	if password {
		if _, token, ok := r.BasicAuth(); ok {
			return token, true
		}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}
