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

// Supervisors of the process probe these paths without a token.
const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

// guard protects next from web pages in an operator's browser. With DNS rebinding, the name of a hostile site leads to this
// listener; the header Host then has that name. Origin or Sec-Fetch-Site reveals requests of pages of other sites.
// [http.CrossOriginProtection] is not enough: it lets every GET through, and /export and /debug/pprof are GETs.
func guard(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		w.Header().Set("X-Content-Type-Options", "nosniff")

		if !isOwnHost(r.Host, name) {
			sendLine(w, http.StatusForbidden, "forbidden: address this listener by IP address, as localhost or by its configured name")
			return
		}
		if isFromOtherSite(r) {
			sendLine(w, http.StatusForbidden, "forbidden: request from another site")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnHost reports whether a Host header is an IP literal, localhost or the configured name.
func isOwnHost(host, name string) bool {
	if withoutPort, _, err := net.SplitHostPort(host); err == nil {
		host = withoutPort
	}

	// An IPv6 address without a port still has its brackets.
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}

	isConfigured := name != "" && strings.EqualFold(host, name)
	return isConfigured || strings.EqualFold(host, "localhost")
}

// isFromOtherSite reports whether a browser sent the request on behalf of a page of another host.
func isFromOtherSite(r *http.Request) bool {
	isForeign := func(origin string) bool {
		u, err := url.Parse(origin)
		return err != nil || !strings.EqualFold(u.Host, r.Host)
	}
	isCrossSite := slices.Contains(r.Header["Sec-Fetch-Site"], "cross-site")
	return isCrossSite || slices.ContainsFunc(r.Header["Origin"], isForeign)
}

// command wraps the handler of a request with side effects. It requires a header that forms and links cannot send, and that pages
// of other origins may not send.
func command(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Registry-Admin") != "1" {
			sendLine(w, http.StatusForbidden, "forbidden: the header Registry-Admin: 1 is required")
			return
		}
		next(w, r)
	}
}

// requireToken lets only probes and requests with the token through. If token is empty, every request passes.
func requireToken(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}

	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")

		// All digests have the same length, so the time of the comparison reveals nothing about the token.
		got := sha256.Sum256([]byte(strings.TrimSpace(shown)))
		hasToken := strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1

		isProbe := r.URL.Path == livePath || r.URL.Path == readyPath
		if !hasToken && !isProbe {
			w.Header().Set("WWW-Authenticate", "Bearer")
			sendLine(w, http.StatusUnauthorized, "unauthorized: a bearer token is required")
			return
		}
		next.ServeHTTP(w, r)
	})
}
