package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/apitest"
)

// prefixOf returns the prefix of the range that tells of a chat id.
func prefixOf(id string) string {
	sum := sha256.Sum256([]byte("registry-id-v1\n" + id))
	return hex.EncodeToString(sum[:])[:3]
}

func TestRangeHeaders(t *testing.T) {
	f := serve(t, withSite)
	path := "/api/ranges/" + prefixOf("100000000000000003")
	for i, crowd := 0, 0; crowd < 33; i++ { // so many in another range that each is large enough to be compressed
		if id := fmt.Sprint("7", i); prefixOf(id) == "abc" {
			f.apply(events.Entry{Revision: 1, List: events.Servers, EntryID: id, ChatID: id, Name: "x", ReportID: "R", ReportedAt: asOf()})
			crowd++
		}
	}
	for range 3 { // built, remembered, and from memory
		for _, encoding := range []string{"", "gzip", "gzip", "*"} {
			a := f.get(t, path, "Accept-Encoding", encoding)
			if h := a.header; a.status != http.StatusOK || len(a.raw) != 30*48 || h.Get("Content-Encoding") != "" || h.Get("Content-Type") != plainText ||
				h.Get("Cache-Control") != "public, s-maxage=30, no-transform" || h.Get("CDN-Cache-Control") != "max-age=10, stale-while-revalidate=20, stale-if-error=3600" ||
				h.Get("Vary") != "Registry-Min-Sequence" || h.Get("Registry-Sequence") != apitest.Sequence(33) {
				t.Fatalf("%q: %d, %d bytes, %v", encoding, a.status, len(a.raw), h)
			}
		}
	}
	a := f.get(t, path, "Registry-Min-Sequence", "1")
	if c := a.header.Get("Cache-Control"); c != "no-store, no-transform" || a.header.Get("CDN-Cache-Control") != "" {
		t.Errorf("at a sequence: %v", a.header)
	}
	tag := a.header.Get("Etag")
	f.apply(events.Entry{Revision: 1, List: events.Servers, EntryID: "new", ChatID: "elsewhere", Name: "x", ReportID: "R", ReportedAt: asOf()})
	if b := f.get(t, path, "If-None-Match", tag, "Accept-Encoding", "gzip"); b.status != http.StatusNotModified || b.body != "" {
		t.Errorf("after a change of another range: %d", b.status)
	}
	f.apply(events.Entry{Revision: 1, List: events.Servers, EntryID: "new", ChatID: "100000000000000003", Name: "x", ReportID: "R", ReportedAt: asOf()})
	if b := f.get(t, path, "If-None-Match", tag); b.status != http.StatusOK || !strings.Contains(b.body, ":0b\n") {
		t.Errorf("after a change of this one: %d %s", b.status, b.body)
	}
}

// Each range has one address, and none other.
func TestBadRanges(t *testing.T) {
	f := serve(t)
	for _, prefix := range []string{"ab", "abcd", "ABC", "abC", "abg", "%30ab", "a%62c", "-12", "0x1", "+12", "%20ab", "ab%00", "%C4%85b"} {
		f.wantError(t, http.StatusBadRequest, "Nieprawidłowy parametr: prefix.", http.MethodGet, "/api/ranges/"+prefix)
	}
	for _, path := range []string{"/api/ranges/", "/api/ranges/abc/", "/api/ranges//abc", "/api/ranges/a%2Fb", "/api/ranges/abc/def"} {
		f.wantError(t, http.StatusNotFound, "Nie znaleziono.", http.MethodGet, path)
	}
}
