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

// guard keeps pages in an operator's browser away from the admin listener: a page that points its
// own name at this address is seen by Host, one that asks across origins by Origin or
// Sec-Fetch-Site (API contract, operators).
func guard(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !ownHost(r.Host, name):
			plain(w, http.StatusForbidden, "forbidden: address this listener by IP address, as localhost or by its configured name")
		case foreign(r):
			plain(w, http.StatusForbidden, "forbidden: request from another site")
		default:
			next.ServeHTTP(w, r)
		}
	})
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

// foreign says whether a browser sent the request for a page of another site.
func foreign(r *http.Request) bool {
	if slices.Contains(r.Header["Sec-Fetch-Site"], "cross-site") {
		return true
	}
	for _, origin := range r.Header["Origin"] {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}

// withToken lets through who shows the token. Digests are compared, so the time taken tells
// neither the token nor its length.
func (cfg *AdminConfig) withToken(next http.Handler) http.Handler {
	if cfg.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(cfg.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, isBearer := bearer(r.Header.Get("Authorization"))
		got := sha256.Sum256([]byte(token))
		if !isBearer || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			plain(w, http.StatusUnauthorized, "unauthorized: a bearer token is required")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func bearer(authorization string) (token string, ok bool) {
	scheme, token, _ := strings.Cut(authorization, " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}
