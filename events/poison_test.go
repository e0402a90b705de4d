package events_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// The corpus of poison events is made of the table of TestDecodeStrictness, one line an event: go
// test ./events -run PoisonCorpus -write-poison.
var writePoison = flag.Bool("write-poison", false, "write testdata/poison.txt again")

// maxPoison keeps the corpus small: longer payloads are in the tables alone.
const maxPoison = 8 << 10

// poisons is the corpus as the tables have it.
func poisons() []eventstest.Poison {
	var all []eventstest.Poison
	add := func(subject, problem, payload string) {
		if len(payload) <= maxPoison {
			all = append(all, eventstest.Poison{Name: fmt.Sprintf("%03d-%s", len(all)+1, slug(problem)), Subject: subject, Problem: problem, Payload: payload})
		}
	}
	n := 0
	stored := func(problem, headers, payload string) { // its own numbers, which stay when the tables grow
		n++
		all = append(all, eventstest.Poison{Name: fmt.Sprintf("headers-%03d-%s", n, slug(problem)), Subject: "registry.scammers.e_1-A", Problem: problem,
			Headers: headers, Payload: payload})
	}
	for _, group := range [][]edit{syntaxEdits(), envelopeEdits(), entryEdits(), otherEdits()} {
		for _, e := range group {
			payload := strings.Replace(e.from, e.old, e.new, 1)
			add(subjectFor(payload, e.from), e.problem, payload)
		}
	}
	for _, subject := range []string{"registry.servers.e_1-A", "registry.scammers.e_1-a", "registry.legit.e_1-A"} {
		add(subject, "subject: subject says "+subject, entryJSON)
	}
	for _, subject := range []string{"registry.scammers", "registry.scammers.a.b", "registry.views.e1", "registry.Scammers.e_1-A",
		"registry.donations.d1.x", "registry.unknown.e1", "registry.views.unknown.e1", "registry.scammers." + strings.Repeat("x", 65)} {
		add(subject, "subject: ", entryJSON)
	}
	for _, e := range chatIDEdits() {
		add("registry.scammers.e_1-A", e.problem, strings.Replace(e.from, e.old, e.new, 1))
	}
	// What the broker stores of a message is not its body alone.
	for _, status := range []string{"100", "200", "400", "404", "408", "409", "423", "503", "Sold"} {
		stored("headers: Status is the broker's own", "NATS/1.0\r\nStatus: "+status+"\r\n\r\n", "")
	}
	stored("headers: Status is the broker's own", "NATS/1.0\r\nstatus: 409\r\nNats-Pending-Messages: 9\r\nNats-Pending-Bytes: 9\r\n\r\n", entryJSON)
	for _, block := range []string{"NATS/1.0\r\nno colon\r\n\r\n", "garbage", "NATS/1.0\r\nA: b\r\n", "NATS/1.0\r\nA: b\r\n folded\r\n\r\n", "N",
		"\x00\xff\x10\r\n\r\n", "NATS/1.0\r\nA: b\r\nx\r\n\r\n"} {
		stored("", block, entryJSON) // the client library delivers it without the headers
		stored("event: not JSON: ends too early", block, "")
	}
	stored("", "NATS/1.0\r\n: no name\r\nA:\r\n\r\n", entryJSON)
	return all
}

// subjectFor is the subject of the first of the payloads that is valid.
func subjectFor(payloads ...string) string {
	for _, payload := range payloads {
		if e, err := events.Decode([]byte(payload)); err == nil {
			return e.Data.Subject().String()
		}
	}
	return "registry.scammers.e_1-A"
}

func slug(problem string) string {
	if problem == "" {
		return "good"
	}
	text := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(problem), "-")
	return strings.Trim(text[:min(len(text), 40)], "-")
}

// TestPoisonCorpus keeps the corpus and the tables the same.
func TestPoisonCorpus(t *testing.T) {
	path := filepath.Join("testdata", "poison.txt")
	want := poisons()
	if *writePoison {
		var text strings.Builder
		for _, p := range want {
			text.WriteString(p.String())
		}
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
	}
	got, err := eventstest.Poisons(path)
	require.NoError(t, err)
	if len(want) < 200 || !slices.Equal(got, want) {
		t.Errorf("%d events of %d in the corpus, or others: run go test ./events -run PoisonCorpus -write-poison", len(got), len(want))
	}
}
