package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/readmodel"
)

// requests are what is asked in TestGoldenAnswers, and the answers.
const requests = "testdata/requests.txt"

// worlds are the servers that answer what testdata/requests.txt asks.
func worlds(t *testing.T) map[string]*fixture {
	all := map[string]*fixture{
		"":             serve(t),
		"loading":      serve(t),
		"broken":       serve(t),
		"crowded":      serve(t),
		"limited":      serve(t, func(c *Config) { c.RateLimit = 0.001 }),
		"no index":     serve(t, func(c *Config) { c.Ranked = nil }),
		"no followers": serve(t, func(c *Config) { c.MaxFollowers = 0 }),
	}
	all["loading"].set(func(s *Readiness) { s.Ready = false })
	all["broken"].public.health.Reader = failing{"a bug"}
	all["crowded"].public.sequenceWaiting = newPlaces(0)
	all["limited"].get(t, "/api/scammers") // the burst
	return all
}

// Every answer that the API has: go test ./httpapi -update writes them again.
func TestGoldenAnswers(t *testing.T) {
	text, err := os.ReadFile(requests)
	require.NoError(t, err)
	all := worlds(t)
	var b strings.Builder
	answered := false // what follows is an answer
	for line := range strings.Lines(string(text)) {
		if answered = answered && line != "\n"; answered {
			continue
		}
		b.WriteString(line)
		if request, ok := strings.CutPrefix(line, "> "); ok {
			answered = true
			b.WriteString(answerTo(t, all, strings.TrimSpace(request)))
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(requests, []byte(b.String()), 0o644))
		return
	}
	require.Equal(t, string(text), b.String())
}

// answerTo sends a request of requests.txt.
func answerTo(t *testing.T, all map[string]*fixture, request string) string {
	t.Helper()
	world, rest, ok := strings.Cut(strings.TrimPrefix(request, "("), ") ")
	if !ok {
		world, rest = "", request
	}
	method, rest, _ := strings.Cut(rest, " ")
	target, header, _ := strings.Cut(rest, " ")
	var headers []string
	if name, value, ok := strings.Cut(header, "="); ok {
		headers = []string{name, value}
	}
	a := all[world].ask(t, method, target, headers...)
	says := fmt.Sprintln(a.status)
	for _, name := range []string{errorHeader, "Allow", "Retry-After", "Location", "Cache-Control", "CDN-Cache-Control", "Vary"} {
		for _, value := range a.header.Values(name) {
			says += name + ": " + value + "\n"
		}
	}
	kind := a.header.Get("Content-Type")
	if a.body != "" && (strings.HasPrefix(kind, "application/json") || strings.HasPrefix(kind, "text/plain")) && !strings.Contains(a.body, `"checkedAt"`) {
		says += strings.TrimSuffix(a.body, "\n") + "\n"
	}
	return says
}

var update = flag.Bool("update", false, "write the golden files anew")

// TestAnswerVersion fails when a list or a check of the same content is another than before and readmodel.AnswerVersion is
// the same: readers would keep the old one, whose tag is then good forever. The hashes of the golden answers are in
// testdata/answers.txt, which -update writes again, but never with another hash under the same number.
func TestAnswerVersion(t *testing.T) {
	const file = "testdata/answers.txt"
	number := fmt.Sprintf("AnswerVersion %d", readmodel.AnswerVersion)
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
	answers, err := os.ReadFile(requests)
	require.NoError(t, err)
	for block := range strings.SplitSeq(string(answers), "\n\n") {
		target, answer, _ := strings.Cut(strings.TrimPrefix(block, "> GET /api/"), "\n")
		head, rest, _ := strings.Cut(answer, "\nVary: ")
		_, body, found := strings.Cut(rest, "\n")
		if !found || !strings.HasPrefix(head, "200") || strings.HasPrefix(target, "search") {
			continue // these have tags of their bodies, or none
		}
		sum := sha256.Sum256([]byte(strings.TrimSuffix(body, "\n") + "\n"))
		hash := hex.EncodeToString(sum[:8])
		if old, ok := was[target]; ok && old != hash && was["number"] == number {
			t.Fatalf("%s is another answer to the same content: raise readmodel.AnswerVersion, then run with -update", target)
		}
		now += target + ": " + hash + "\n"
	}
	if now == string(known) {
		return
	}
	if !*update {
		t.Fatalf("%s is not up to date: run with -update", file)
	}
	require.NoError(t, os.WriteFile(file, []byte(now), 0o644))
}
