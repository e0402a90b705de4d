package httpapi

import (
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// hostileTexts are characters and pairs that grow when a text is normalized, folded or made a
// look-alike key, and that part it into many words.
func hostileTexts() []string {
	return []string{
		"a", "m", "ﷺ", "ﷺa", "ﷺ,", "㌖ ", "ΐ", "ß", "ﬃ", "İ", "ⓜ", "a\u0301", "a\u0345\u0323", "\u200b", "a\u200b", "\u1160", "a b ", "a,", "1 ", "1,", "<@1>", "\"", "&amp;",
		"\U0001d7d8", "\U0001f1f5", "ᄀ", "각", "ꙮ", "%", "/users/", "żółw ", "nie ", "*", "?~", "Ꭰ",
	}
}

// textPaths are the requests that a text from a stranger gets into, and the most code points, or
// bytes of a header, that each takes.
func textPaths() map[string]struct {
	most   int
	target func(text string) (target, header, value string)
} {
	type path = struct {
		most   int
		target func(text string) (target, header, value string)
	}
	query := func(prefix string) func(string) (string, string, string) {
		return func(text string) (string, string, string) { return prefix + url.QueryEscape(text), "", "" }
	}
	header := func(name string) func(string) (string, string, string) {
		return func(text string) (string, string, string) { return "/api/scammers", name, text }
	}
	return map[string]path{
		"search of a list":  {100, query("/api/scammers?search=")},
		"search of a check": {100, query("/api/check?search=")},
		"id of a list":      {64, query("/api/scammers?id=")},
		"id of a check":     {300, query("/api/check?id=")},
		"ids":               {400, query("/api/check/batch?ids=")},
		"q":                 {100, query("/api/search?q=")},
		"unknown parameter": {300, query("/api/scammers?x=")},
		"id of a donation":  {64, query("/api/donate/status?id=")},
		"Accept-Encoding":   {8000, header("Accept-Encoding")},
		"If-None-Match":     {8000, header("If-None-Match")},
		minSeqHeader:        {8000, header(minSeqHeader)},
		"X-Forwarded-For":   {8000, header("X-Forwarded-For")},
	}
}

// TestTextsCostWhatTheyAre: on every path, twice the text allocates at most some more than twice
// the bytes, and the largest text that the path takes no more than half a megabyte.
func TestTextsCostWhatTheyAre(t *testing.T) {
	f := serve(t, func(c *Config) { c.RateLimit, c.TrustedProxies = 1e6, prefixes(t, "192.0.2.0/24", "10.0.0.0/8") })
	serial := 0
	cost := func(text string, target func(string) (string, string, string)) uint64 {
		least := ^uint64(0)
		for range 4 { // others allocate meanwhile
			serial++ // no response is cached
			address, name, value := target(text)
			join := "?"
			if strings.Contains(address, "?") {
				join = "&"
			}
			r := httptest.NewRequest("GET", address+join+"n="+strconv.Itoa(serial), nil)
			if name != "" {
				r.Header[name] = []string{value}
			}
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f.public.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			least = min(least, after.TotalAlloc-before.TotalAlloc)
		}
		return least
	}
	worst := map[string]string{}
	for name, p := range textPaths() {
		var most uint64
		for _, piece := range append(hostileTexts(), `"a",`, "gzip;q=0.5,", "10.9.9.9,", "W/") {
			text := func(n int) string {
				runes := []rune(strings.Repeat(piece, n))
				return string(runes[:n])
			}
			half, whole := cost(text(p.most/2), p.target), cost(text(p.most), p.target)
			if whole > 5*half/2+32<<10 {
				t.Errorf("%s: %d bytes for %d of %q, %d for twice as many", name, half, p.most/2, piece, whole)
			}
			if whole > most {
				most, worst[name] = whole, strconv.Quote(piece)
			}
		}
		t.Logf("%s: at most %d bytes, for %s", name, most, worst[name])
		if most > 512<<10 {
			t.Errorf("%s: %d bytes for %s", name, most, worst[name])
		}
	}
}
