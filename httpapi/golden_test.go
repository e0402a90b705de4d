package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/httpapi/internal/apitest"
	"example.org/registry/readmodel"
)

// Every answer that the API has, in full: go test ./httpapi -update writes them again.
func TestGoldenAnswers(t *testing.T) {
	f := serve(t)
	for name, target := range map[string]string{
		"scammers":             "/api/scammers",
		"scammers_oldest":      "/api/scammers?sort=oldest",
		"scammers_popular":     "/api/scammers?sort=popular",
		"scammers_popular_asc": "/api/scammers?sort=popular_asc",
		"scammers_az":          "/api/scammers?sort=az",
		"scammers_za":          "/api/scammers?sort=za",
		"scammers_verified":    "/api/scammers?status=verified",
		"scammers_risk":        "/api/scammers?status=risk",
		"scammers_with":        "/api/scammers?proofs=with",
		"scammers_private":     "/api/scammers?proofs=private",
		"scammers_risk_with":   "/api/scammers?status=risk&proofs=with",
		"scammers_page":        "/api/scammers?skip=1&limit=2",
		"scammers_beyond":      "/api/scammers?skip=20000",
		"scammers_id":          "/api/scammers?id=100000000000000003",
		"scammers_id_risk":     "/api/scammers?id=100000000000000003&status=risk&search=nobody",
		"scammers_id_unknown":  "/api/scammers?id=1",
		"scammers_search":      "/api/scammers?search=CELINA",
		"scammers_search_text": "/api/scammers?search=pod+admina:+strona",
		"scammers_search_none": "/api/scammers?search=example.org",
		"scammers_search_chat": "/api/scammers?search=0000000003&sort=az",
		"servers":              "/api/servers",
		"servers_az":           "/api/servers?sort=az",
		"legit":                "/api/legit",
		"legit_risk":           "/api/legit?status=risk",
		"check_id":             "/api/check?id=100000000000000003",
		"check_id_over_search": "/api/check?id=200000000000000001&search=celina",
		"check_name":           "/api/check?search=nitro",
		"check_legit":          "/api/check?search=ewa",
		"check_legit_left_out": "/api/check?search=zenon",
		"check_legit_unseen":   "/api/check?id=300000000000000002",
		"check_nobody":         "/api/check?search=kowalski",
		"check_ranks":          "/api/check?search=a",
		"check_similar":        "/api/check?search=zen0n+lotr",
		"check_imitates":       "/api/check?search=Ew%D0%B0+Zaufana",
		"check_similar_risk":   "/api/check?search=%E2%80%8BCeIina",
		"check_similar_part":   "/api/check?search=zabka+giveaway",
		"check_mention":        "/api/check?search=%3C@!100000000000000001%3E",
		"check_address":        "/api/check?id=https://discord.com/users/200000000000000002",
		"ranges":               "/api/ranges",
		"range":                "/api/ranges/" + prefixOf("100000000000000003"),
		"error_prefix":         "/api/ranges/ABC",
		"batch":                "/api/check/batch?ids=100000000000000003,%3C@300000000000000002%3E,nobody",
		"changes":              "/api/changes",
		"changes_page":         "/api/changes/" + apitest.Epoch + "?since=0",
		"changes_cut":          "/api/changes/" + apitest.Epoch + "?since=3&limit=2",
		"changes_none":         "/api/changes/" + apitest.Epoch + "?since=" + apitest.Sequence(0),
		"error_gone":           "/api/changes/other?since=0",
		"error_since":          "/api/changes/" + apitest.Epoch + "?limit=1",
		"search":               "/api/search?q=nitro",
		"search_nothing":       "/api/search?q=nikt&list=servers",
		"donation":             "/api/donate/status?id=d-1",
		"error_invalid":        "/api/scammers?limit=61",
		"error_query":          "/api/scammers?%zz",
		"error_missing":        "/api/check?id=&search=%20",
		"error_missing_id":     "/api/donate/status",
		"error_batch":          "/api/check/batch?ids=1,,2",
		"error_header":         "/api/scammers",
		"error_not_found":      "/api/nobody",
		"error_donation":       "/api/donate/status?id=unknown",
		"error_method":         "/api/scammers",
		"error_loading":        "/api/scammers",
	} {
		t.Run(name, func(t *testing.T) {
			method, headers := http.MethodGet, []string{}
			f.set(func(s *Readiness) { s.Ready = name != "error_loading" })
			switch name {
			case "error_method":
				method = http.MethodPost
			case "error_header":
				headers = []string{"Registry-Min-Sequence", "x"}
			}
			golden(t, name, f.ask(t, method, target, headers...).body)
		})
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares body with the golden file of that name.
func golden(t *testing.T, name, body string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden.json")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(body+"\n"), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if body+"\n" != string(want) {
		t.Errorf("got  %s\nwant %s", body, want)
	}
}

// TestAnswerVersion fails when a list or a check of the same content is another than before and
// readmodel.AnswerVersion is the same: readers would keep the old one, whose tag is then good
// forever. The names and hashes of the golden answers are in testdata/answers.txt, which -update
// writes again, but never with another hash under the same number.
func TestAnswerVersion(t *testing.T) {
	const file = "testdata/answers.txt"
	number := fmt.Sprintf("AnswerVersion %d, RenderVersion %d", readmodel.AnswerVersion, readmodel.RenderVersion)
	names, err := filepath.Glob("testdata/*.golden.json")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	known, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	was := map[string]string{}
	for line := range strings.Lines(string(known)) {
		name, hash, _ := strings.Cut(strings.TrimSpace(line), ": ")
		was[name] = hash
	}
	now := "number: " + number + "\n"
	for _, name := range names {
		base := strings.TrimSuffix(filepath.Base(name), ".golden.json")
		kind, _, _ := strings.Cut(base, "_")
		if kind == "error" || kind == "donation" || kind == "search" {
			continue // these have tags of their bodies, or none
		}
		body, err := os.ReadFile(name)
		require.NoError(t, err)
		sum := sha256.Sum256(body)
		hash := hex.EncodeToString(sum[:8])
		if old, ok := was[base]; ok && old != hash && was["number"] == number {
			t.Fatalf("%s is another answer to the same content: raise readmodel.AnswerVersion, then run with -update", base)
		}
		now += base + ": " + hash + "\n"
	}
	if now == string(known) {
		return
	}
	if !*update {
		t.Fatalf("%s is not up to date: run with -update", file)
	}
	require.NoError(t, os.WriteFile(file, []byte(now), 0o644))
}
