package main

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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
	b := eventstest.Broker(t)
	js := eventstest.Connect(t, b)
	eventstest.Stream(t, js)
	stop, err := projector.ServeValidation(js.Conn(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	program := regexp.MustCompile("(?s)```js\n(.*?)```").FindStringSubmatch(page(t, "events/PUBLISHING.md"))
	if program == nil || !strings.Contains(program[1], "nats://127.0.0.1:4222") {
		t.Fatal("no program in JavaScript in events/PUBLISHING.md")
	}
	dir := t.TempDir()
	script := strings.Replace(program[1], "nats://127.0.0.1:4222", b.ClientURL(), 1)
	if err := os.WriteFile(filepath.Join(dir, "publish.mjs"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "publish.mjs")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "1" {
		t.Fatalf("%v: %s, want the sequence 1", err, out)
	}
	stream, err := js.Stream(t.Context(), events.DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := events.DecodeMessage(m.Subject, m.Data)
	if err != nil || e.Type != events.TypeListed || m.Header.Get("Nats-Msg-Id") != e.ID {
		t.Errorf("%+v, header %s: %v", e, m.Header.Get("Nats-Msg-Id"), err)
	}
}
