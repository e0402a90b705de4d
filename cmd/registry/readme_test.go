package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
)

func readme(t *testing.T) string { return page(t, "README.md") }

// page returns the text of a file of the repository.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	require.NoError(t, err)
	return string(text)
}

// pages returns the pages that readers start from.
func pages() []string {
	return []string{"README.md", "deploy/README.md", "deploy/cluster.md", "deploy/operating.md", "deploy/erasing.md", "deploy/capacity.md"}
}

// TestReadmeRequests asks the demonstration what the README and the contract of the API ask it, and
// wants an answer that finds something.
func TestReadmeRequests(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "--demo")
	requests := regexp.MustCompile(`curl 'http://localhost:8080([^']*)'`).FindAllStringSubmatch(readme(t)+page(t, "httpapi/CONTRACT.md"), -1)
	require.Greater(t, len(requests), 10, "requests in the README and the contract")

	for _, r := range requests {
		status, body, err := ask(p.HTTP + r[1])
		for deadline := time.Now().Add(time.Minute); status == http.StatusServiceUnavailable && time.Now().Before(deadline); {
			time.Sleep(50 * time.Millisecond) // the index of ranked search is made after the rest
			status, body, err = ask(p.HTTP + r[1])
		}
		empty := strings.HasPrefix(string(body), `{"data":[]`) || strings.HasPrefix(string(body), `{"results":[]`)
		if err != nil || status != http.StatusOK || empty {
			t.Errorf("%s: %d %.200s %v", r[1], status, body, err)
		}
	}
}

// TestReadmeFlags looks for flags that do not exist, or no longer.
func TestReadmeFlags(t *testing.T) {
	var flags commands
	parser, err := newParser(&flags, func(string) string { return "" }, nil, nil, nil)
	require.NoError(t, err)
	known := map[string]bool{}
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok {
			known["--"+f.Name] = true
		}
		return next(nil)
	})
	require.NoError(t, err)
	foreign := map[string]bool{"--output": true, "--jetstream": true, "--subject": true, "--keep": true, "--nkey": true, "--inbox-prefix": true, "--server": true, "--select": true, "--context": true, // of curl and nats
		"--build": true, "--clean": true, "--skip": true, "--profile": true, "--force-recreate": true, "--now": true, "--from-file": true, "--from-env-file": true} // of docker, systemctl, kubectl, goreleaser
	for _, file := range pages() {
		for _, name := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(page(t, file), -1) {
			if !known[name] && !foreign[name] {
				t.Errorf("%s names %s, which is no flag", file, name)
			}
		}
	}
}

// TestReadmeEvent decodes the event that the README publishes from another language.
func TestReadmeEvent(t *testing.T) {
	sample := regexp.MustCompile(`(?s)nats pub --jetstream (\S+) .*?\\\n  '(.*?)'\n`).FindStringSubmatch(readme(t))
	require.NotNil(t, sample, "an example of the nats command in the README")

	_, err := events.DecodeMessage(sample[1], []byte(sample[2]))
	require.NoError(t, err)
}
