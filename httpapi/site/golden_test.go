package site

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every state of every page, in full: go test ./httpapi/site -update writes them anew.
func TestGoldenPages(t *testing.T) {
	w := newWorld(t, full(), people()...)
	check := func(search string) string { return w.check(t, readmodel.CheckQuery{Search: search}) }
	list := func(q readmodel.ListQuery) string { return w.list(t, q, 1) }
	failure := func(status int, text, param string, again bool) string {
		page, err := w.site.Append(nil, "error", FailureOf(status, text, param, again))
		if err != nil {
			t.Fatal(err)
		}
		return wellFormed(t, string(page))
	}
	for name, page := range map[string]string{
		"check":           w.check(t, readmodel.CheckQuery{}),
		"check_nobody":    check("kowalski"),
		"check_scam":      check("zenon łotr"),
		"check_risk":      check("ćma"),
		"check_server":    check("Darmowe Nitro"),
		"check_legit":     check("ewa zaufana"),
		"check_part":      check("a"),
		"check_similar":   check("zen0n lotr"),
		"check_id":        w.check(t, readmodel.CheckQuery{ID: "100000000000000003"}),
		"check_id_nobody": w.check(t, readmodel.CheckQuery{ID: "1"}),
		"list":            list(readmodel.ListQuery{List: events.Scammers}),
		"list_servers":    list(readmodel.ListQuery{List: events.Servers}),
		"list_legit":      list(readmodel.ListQuery{List: events.Legit, Sort: readmodel.ZA}),
		"list_page":       list(readmodel.ListQuery{List: events.Scammers, Skip: 1, Limit: 2, Sort: readmodel.AZ, Proofs: readmodel.ProofsWith}),
		"list_id":         list(readmodel.ListQuery{List: events.Scammers, ID: "100000000000000003"}),
		"list_nobody":     list(readmodel.ListQuery{List: events.Scammers, Search: `"<nikt>" & co`, Status: readmodel.StatusRisk}),
		"list_beyond":     list(readmodel.ListQuery{List: events.Scammers, Skip: 20000}),
		"error_param":     failure(http.StatusBadRequest, "Nieprawidłowy parametr: search.", "search", false),
		"error_unknown":   failure(http.StatusNotFound, "Nie znaleziono.", "", false),
		"error_method":    failure(http.StatusMethodNotAllowed, "Metoda niedozwolona", "", false),
		"error_often":     failure(http.StatusTooManyRequests, "Zbyt wiele zapytań.", "", false),
		"error_broken":    failure(http.StatusInternalServerError, "Błąd podczas pobierania danych.", "", false),
		"error_loading":   failure(http.StatusServiceUnavailable, "Trwa wczytywanie danych.", "", true),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, page) })
	}
}

// golden compares a page, the hashes in its assets' names aside, with the golden file of that name.
func golden(t *testing.T, name, page string) {
	t.Helper()
	page = regexp.MustCompile(`(/assets/\w+)\.[0-9a-f]{12}\.`).ReplaceAllString(page, "$1.HASH.")
	file := filepath.Join("testdata", name+".golden.html")
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if page != string(want) {
		t.Errorf("got  %s\nwant %s", page, want)
	}
}

// Data that was last known to be complete a while ago is said to be, and since when.
func TestBanner(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Page{{Title: "x", Data: Failure{}}, {Title: "x", Data: Failure{}, AsOf: time.Date(2026, 11, 21, 11, 15, 59, 0, time.FixedZone("CET", 3600))}} {
		page, err := s.Append(nil, "error", p)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range elements(t, string(page), "p") {
			if attr(n, "id") != "nieaktualne" {
				continue
			}
			hidden := regexp.MustCompile(`<p [^>]*hidden`).Match(page)
			if hidden != p.AsOf.IsZero() {
				t.Errorf("hidden: %v, as of %v", hidden, p.AsOf)
			}
			if said := regexp.MustCompile(`21 listopada 2026, 10:15 UTC`).Match(page); said == p.AsOf.IsZero() {
				t.Errorf("the time is there: %v, as of %v", said, p.AsOf)
			}
		}
	}
}
