package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/readmodel"
)

// The tag changes when the list does, and only then; that of a popular order with view totals too.
func TestTags(t *testing.T) {
	f := serve(t)
	tags := func() (all [4]string) {
		for i, target := range []string{"/api/scammers?sort=az&skip=3", "/api/scammers?sort=popular", "/api/legit", "/api/check?id=1"} {
			all[i] = f.get(t, target).header.Get("ETag")
		}
		return all
	}
	changed := func(change events.Data) (which [4]bool) {
		before := tags()
		f.apply(change)
		for i, tag := range tags() {
			which[i] = tag != before[i]
		}
		return which
	}
	entry := apitest.People()[1].(events.Entry)
	entry.Name = "Nowa nazwa"
	for _, c := range []struct {
		name   string
		change events.Data
		want   [4]bool
	}{
		{"views", events.Views{Revision: 1, List: events.Scammers, EntryID: "s2", Views: 5}, [4]bool{false, true, false, false}},
		{"the same views", events.Views{Revision: 1, List: events.Scammers, EntryID: "s2", Views: 5}, [4]bool{}},
		{"an entry", entry, [4]bool{true, true, false, true}},
		{"the same entry", entry, [4]bool{}},
		{"a donation", events.DonationRemoval{Revision: 1, DonationID: "d-1"}, [4]bool{}},
	} {
		if got := changed(c.change); got != c.want {
			t.Errorf("%s: list, popular, legit, check changed: %v, want %v", c.name, got, c.want)
		}
	}
}

// large makes the answer to target larger than 1 KiB, small keeps it below.
const (
	largeTarget = "/api/scammers?sort=az"
	smallTarget = "/api/scammers?limit=1"
)

func serveLarge(t testing.TB) *fixture {
	f := serve(t)
	var more []events.Data
	for i := range 10 {
		more = append(more, events.Entry{Revision: 1, List: events.Scammers, EntryID: "m" + strconv.Itoa(i), ChatID: "5", Name: "Jeszcze ktoś",
			Reason: "Powód " + strings.Repeat("zażółć ", 20), ReportID: "R", ReportedAt: asOf()})
	}
	f.apply(more...)
	if a, b := len(f.get(t, largeTarget).raw), len(f.get(t, smallTarget).raw); a < 2*minZipped || b >= minZipped {
		t.Fatalf("bodies of %d and %d bytes", a, b)
	}
	return f
}

func TestNegotiation(t *testing.T) {
	f := serveLarge(t)
	plain := f.get(t, largeTarget)
	tag := strings.Trim(plain.header.Get("ETag"), `"`)
	for accept, coding := range map[string]string{
		"": "", "identity": "", "br": "", "deflate, br": "", "gzip": "gzip", "GZIP": "gzip", "x-gzip": "gzip", "zstd": "",
		"gzip, zstd": "gzip", "zstd,gzip": "gzip", "gzip, deflate, br, zstd": "gzip",
		"gzip;q=0": "", "gzip;q=0, zstd": "", "gzip;q=0.001": "gzip", "*": "gzip", "*;q=0": "", "*, gzip;q=0": "",
		"gzip;q=0.5, identity": "gzip", "gzip;q=0.5, identity;q=0.5": "gzip", "identity;q=0": "", "identity;q=0, gzip": "gzip",
		"gzip;q=x": "", "gzip;q=2": "gzip", "gzip;q=-1": "", "gzip;q=NaN": "", ",,": "", ";": "", "gzipp": "", "gzip ; q = 1": "gzip",
	} {
		a := f.get(t, largeTarget, "Accept-Encoding", accept)
		if got := a.header.Get("Content-Encoding"); got != coding {
			t.Errorf("Accept-Encoding %q: %q, want %q", accept, got, coding)
			continue
		}
		want := `"` + tag + `"`
		if coding != "" {
			want = `"` + tag + `-` + coding + `"`
		}
		if got := a.header.Get("ETag"); got != want {
			t.Errorf("Accept-Encoding %q: ETag %s, want %s", accept, got, want)
		}
		if got := a.header.Get("Content-Length"); got != strconv.Itoa(len(a.raw)) {
			t.Errorf("Accept-Encoding %q: Content-Length %q of %d", accept, got, len(a.raw))
		}
		if a.body != plain.body || (coding != "") != (len(a.raw) < len(plain.raw)) {
			t.Errorf("Accept-Encoding %q: another body, or not smaller: %d of %d bytes", accept, len(a.raw), len(plain.raw))
		}
	}
	if a := f.get(t, largeTarget, "Accept-Encoding", "br", "Accept-Encoding", "gzip"); a.header.Get("Content-Encoding") != "gzip" {
		t.Error("the second Accept-Encoding line was not read")
	}
	small := f.get(t, smallTarget, "Accept-Encoding", "gzip")
	if got := small.header.Get("ETag"); small.header.Get("Content-Encoding") != "" || got != `"`+tag+`"` {
		t.Errorf("a small answer: %v", small.header)
	}
}

// A body of 1024 bytes is encoded, one of 1023 is not.
func TestEncodingBound(t *testing.T) {
	f := serve(t)
	sized := func(n int) *response {
		e := apitest.People()[4].(events.Entry)
		e.EntryID, e.ChatID, e.Reason = "sized", "77", ""
		f.apply(e)
		e.Reason = strings.Repeat("x", n-len(f.get(t, "/api/servers?id=77").raw)-len("<p></p>\\n"))
		f.apply(e)
		if got := len(f.get(t, "/api/servers?id=77").raw); got != n {
			t.Fatalf("%d bytes, want %d", got, n)
		}
		return f.get(t, "/api/servers?id=77", "Accept-Encoding", "gzip")
	}
	if a := sized(1024); a.header.Get("Content-Encoding") != "gzip" {
		t.Error("1024 bytes were not encoded")
	}
	if a := sized(1023); a.header.Get("Content-Encoding") != "" {
		t.Error("1023 bytes were encoded")
	}
}

// A 304 has the headers of the 200 that the same reader would get, and no body, whichever variant of the body the reader has.
func TestNotModified(t *testing.T) {
	f := serveLarge(t)
	for _, target := range []string{largeTarget, smallTarget, "/api/check?search=a", "/api/check?id=1", "/api/legit?search=ewa", "/openapi.yaml"} {
		for _, accept := range []string{"identity", "gzip"} {
			full := f.get(t, target, "Accept-Encoding", accept)
			tag := strings.Trim(full.header.Get("ETag"), `"`)
			bare := strings.TrimSuffix(tag, "-gzip")
			for _, held := range []string{
				`"` + tag + `"`, `W/"` + tag + `"`, "*", " * ", `"x", "` + tag + `"`, `"a,b",W/"c" , "` + tag + `"`, `,"` + tag + `",`,
				`"` + tag + `" , broken`, `"` + bare + `"`, `"` + bare + `-gzip"`,
			} {
				a := f.get(t, target, "Accept-Encoding", accept, "If-None-Match", held)
				if a.status != http.StatusNotModified || len(a.raw) > 0 {
					t.Errorf("%s, %s, If-None-Match %s: %d with %d bytes", target, accept, held, a.status, len(a.raw))
				}
				sameHeaders(t, target+" "+accept+" "+held, full.header, a.header)
			}
			for _, other := range []string{
				`"x"`, bare, `"` + bare + `-br"`, `'` + bare + `'`, `"` + bare, `""`, "", "**",
			} {
				a := f.get(t, target, "Accept-Encoding", accept, "If-None-Match", other)
				if a.status != http.StatusOK || a.body != full.body {
					t.Errorf("%s, %s, If-None-Match %s: %d", target, accept, other, a.status)
				}
			}
		}
	}
	a := f.get(t, largeTarget, "If-None-Match", `"x"`, "If-None-Match", f.get(t, largeTarget).header.Get("ETag"))
	if a.status != http.StatusNotModified {
		t.Errorf("a tag on the second line: %d", a.status)
	}
}

// sameHeaders compares all but what describes a body.
func sameHeaders(t *testing.T, what string, full, short http.Header) {
	t.Helper()
	for name := range full {
		switch name {
		case "Content-Length", "Content-Type", "Content-Encoding", "Date":
			if name != "Date" && short.Get(name) != "" {
				t.Errorf("%s: 304 has %s", what, name)
			}
		default:
			if got, want := strings.Join(short.Values(name), "|"), strings.Join(full.Values(name), "|"); got != want {
				t.Errorf("%s: 304 has %s %q, the 200 %q", what, name, got, want)
			}
		}
	}
}

// A 304 to a reader of plain answers runs no query: here it would be refused.
func TestNotModifiedRunsNoSearch(t *testing.T) {
	f := serve(t)
	f.boundSearches(0)
	require.NoError(t, f.public.searches.take(t.Context()))
	defer f.public.searches.leave()
	const target = "/api/scammers?search=adam"
	f.wantError(t, http.StatusServiceUnavailable, "Serwer jest przeciążony.", http.MethodGet, target)
	tag := f.model.View().ListTag(&readmodel.ListQuery{List: events.Scammers})
	for _, pair := range [][2]string{{"identity", tag}, {"gzip", tag + "-gzip"}} {
		if a := f.get(t, target, "Accept-Encoding", pair[0], "If-None-Match", `"`+pair[1]+`"`); a.status != http.StatusNotModified {
			t.Errorf("%v: %d", pair, a.status)
		}
	}
}

// A picture that gzip makes no smaller is sent as it is.
func TestWhatDoesNotShrink(t *testing.T) {
	f := serveSite(t)
	for _, path := range []string{"/favicon.ico", f.public.site.Assets()[0].Path, f.public.site.Assets()[1].Path, f.public.site.Assets()[2].Path} {
		plain, zipped := f.fetch(t, http.MethodGet, path), f.fetch(t, http.MethodGet, path, "Accept-Encoding", "gzip")
		if zipped.status != http.StatusOK || zipped.body != plain.body || len(zipped.raw) > len(plain.raw) {
			t.Errorf("%s: %d, %d bytes of %d", path, zipped.status, len(zipped.raw), len(plain.raw))
		}
	}
}
