package main

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/projector"
)

// TestPublishingJavaScript runs the program of events/PUBLISHING.md with the real client: the
// decoder finds its event valid, and the stream has it.
func TestPublishingJavaScript(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("left out with the race detector: it sees nothing of other programs")
	}
	t.Parallel()
	node, err := exec.LookPath("node")
	modules := filepath.Join(os.Getenv("REGISTRY_NPM"), "node_modules")
	if _, noClient := os.Stat(filepath.Join(modules, "@nats-io")); err != nil || noClient != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("node or @nats-io below REGISTRY_NPM is missing: .ci/run installs both")
		}
		t.Skip("left out: node or @nats-io below REGISTRY_NPM is missing")
	}
	dir := t.TempDir()
	p := publishingProgram(t, "js", filepath.Join(dir, "publish.mjs"))
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	cmd := exec.CommandContext(t.Context(), node, "publish.mjs")
	cmd.Dir = dir
	p.publishes(t, cmd)
}

// TestPublishingGo compiles the program of events/PUBLISHING.md and runs it.
func TestPublishingGo(t *testing.T) {
	if eventstest.RaceDetector {
		t.Skip("left out with the race detector: it sees nothing of other programs")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "main.go")
	p := publishingProgram(t, "go", file)
	p.publishes(t, exec.CommandContext(t.Context(), "go", "run", file))
}

// pageProgram is a broker and a stream for a program of events/PUBLISHING.md.
type pageProgram struct{ js jetstream.JetStream }

// publishingProgram writes the page's program in a language to file, for a broker of the test.
func publishingProgram(t *testing.T, language, file string) pageProgram {
	t.Helper()
	b := eventstest.Broker(t)
	js := eventstest.Connect(t, b)
	eventstest.Stream(t, js)
	stop, err := projector.ServeValidation(js.Conn(), nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(stop)
	program := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(page(t, "events/PUBLISHING.md"))
	if program == nil || !strings.Contains(program[1], "nats://127.0.0.1:4222") {
		t.Fatal("no program in events/PUBLISHING.md in", language)
	}
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(program[1], "nats://127.0.0.1:4222", b.ClientURL(), 1)), 0o600))
	return pageProgram{js}
}

// publishes wants cmd to publish one valid event, and to print its sequence.
func (p pageProgram) publishes(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "1" {
		t.Fatalf("%v: %s, want the sequence 1", err, out)
	}
	stream, err := p.js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	m, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	e, err := events.DecodeMessage(m.Subject, m.Data)
	if err != nil || e.Type != events.TypeListed || m.Header.Get("Nats-Msg-Id") != e.ID {
		t.Errorf("%+v, header %s: %v", e, m.Header.Get("Nats-Msg-Id"), err)
	}
}
