package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
)

// An import that ended anywhere is repeated when the broker starts again, and leaves the last
// states of an uninterrupted one: nobody whom the demonstration delists is back.
func TestDemoImportRepeated(t *testing.T) {
	t.Parallel()
	all := mustDemo(t)
	for _, ends := range [][]int{{0}, {len(all) - 1}, {len(all) - 1, len(all) / 2, len(all) - 1}} {
		t.Run(fmt.Sprint(ends), func(t *testing.T) {
			s := &server{flags: &serveCmd{Stream: events.DefaultStream, StreamHistory: events.DefaultHistory}, log: slog.New(slog.DiscardHandler)}
			dir := t.TempDir()
			for _, end := range ends {
				withBroker(t, dir, func(js jetstream.JetStream) { interrupted(t, s, js, all[:end]) })
			}
			withBroker(t, dir, func(js jetstream.JetStream) {
				if err := s.importDemo(t.Context(), js.Conn(), readmodel.Checkpoint{}); err != nil {
					t.Fatal(err)
				}
				endsAs(t, js, all)
			})
		})
	}
}

func withBroker(t *testing.T, dir string, do func(jetstream.JetStream)) {
	t.Helper()
	b := eventstest.Broker(t, func(c *broker.Config) { c.StoreDir = dir })
	defer b.Shutdown()
	js := eventstest.Connect(t, b)
	defer js.Conn().Close()
	do(js)
}

// interrupted is an import that got no further than these events.
func interrupted(t *testing.T, s *server, js jetstream.JetStream, some []events.Event) {
	t.Helper()
	if _, err := s.demoStream(t.Context(), js, readmodel.Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	var messages []events.Message
	for _, e := range some {
		messages = append(messages, events.Message{Event: e})
	}
	if _, err := events.NewPublisher(js, events.PublisherConfig{}).PublishAll(t.Context(), messages); err != nil {
		t.Fatal(err)
	}
}

// endsAs compares the last event of every subject.
func endsAs(t *testing.T, js jetstream.JetStream, all []events.Event) {
	t.Helper()
	stream, err := js.Stream(t.Context(), events.DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]string{}
	for _, e := range all {
		last[e.Data.Subject()] = e.ID
	}
	for subject, id := range last {
		msg, err := stream.GetLastMsgForSubject(context.Background(), subject)
		if err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		if e, err := events.DecodeMessage(subject, msg.Data); err != nil || e.ID != id {
			t.Fatalf("the last of %s is %s, %v; want %s", subject, e.ID, err, id)
		}
	}
}

// The real program, killed at a random moment of its import, shows in the end what one shows that was
// left in peace (promise 4: the digest).
func TestDemoKilledWhileImporting(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	peace := t.TempDir()
	want, whole := demoDigest(t, peace), brokerBytes(peace)
	for range 2 {
		dir := t.TempDir()
		c := startDemo(t, dir)
		for part := rng.Int64N(whole); brokerBytes(dir) <= part; {
			select {
			case <-c.ended:
				t.Fatal("server ended by itself")
			default:
			}
		}
		c.end(syscall.SIGKILL)
		if got := demoDigest(t, dir); got != want {
			t.Errorf("digest %s, uninterrupted %s", got, want)
		}
	}
}

// brokerBytes is how many bytes of messages the broker has on disk.
func brokerBytes(dir string) int64 {
	var bytes int64
	_ = filepath.WalkDir(filepath.Join(dir, "data"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".blk" {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil // the server makes and removes files meanwhile
	})
	return bytes
}

func startDemo(t *testing.T, dir string) *child {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := startChild(binary, dir, filepath.Join(dir, "log"), os.Environ(), "--demo", "--data-dir="+filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.end(os.Kill) })
	return c
}

// demoDigest starts the demonstration, waits until it is ready and stops it.
func demoDigest(t *testing.T, dir string) string {
	t.Helper()
	c := startDemo(t, dir)
	line, ok := c.await("ready")
	if !ok {
		t.Fatal("server did not become ready")
	}
	_, body, err := ask("http://" + line.Admin + "/projection")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Digest string }
	if err := json.Unmarshal(body, &doc); err != nil || doc.Digest == "" {
		t.Fatalf("%s: %v", body, err)
	}
	if status := c.end(syscall.SIGTERM); status != 0 {
		t.Errorf("stopped with status %d", status)
	}
	return doc.Digest
}
