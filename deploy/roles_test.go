package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// Each role does its work, with the program itself where it has a command for it, and the server has nothing to refuse.
func TestRolesAtWork(t *testing.T) {
	c := startNode(t)
	operator := c.connect(t, "operator")
	createStreams(t, c, operator)
	clean := func(what string) {
		t.Helper()
		if seen := c.log.take(); len(seen) > 0 {
			t.Errorf("%s: %s", what, strings.Join(seen, "\n"))
		}
	}
	clean("operator creates the streams")

	publisher := c.connect(t, "publisher")
	mistakes, err := publisher.SubscribeSync("registry-rejected.>")
	if err != nil {
		t.Fatal(err)
	}
	said := output(t, registry, append([]string{"publish", eventFile(t, 200)}, c.as("publisher")...)...)
	if !strings.Contains(said, "200 sent") {
		t.Error(said)
	}
	eventstest.PublishRaw(t, jetStream(t, publisher), "registry.scammers.bad", []byte("nonsense"))
	clean("publisher publishes")

	for role, every := range map[string]string{"replica": "0", "snapshots": "1s"} {
		r := serve(t, append(c.as(role), "--snapshot-every="+every)...)
		await(t, r.Admin+"/projection", `"checkpoint":201,`)
		await(t, r.Admin+"/projection", `"rejected":1,`)
		await(t, r.Admin+"/readyz", "")
		await(t, r.HTTP+"/api/status", `"ok":true`)
	}
	if _, err := mistakes.NextMsg(patience); err != nil {
		t.Error("the publisher hears of no mistake:", err)
	}
	clean("replicas serve")
	awaitSnapshot(t, c)
	clean("the server's own snapshots")

	snapshotWork(t, c)
	clean("snapshots are written and read")

	js := jetStream(t, operator)
	rejected, err := js.Stream(t.Context(), events.RejectedStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := rejected.Purge(t.Context()); err != nil {
		t.Error("operator clears rejected events:", err)
	}
	publish := events.NewPublisher(js, events.PublisherConfig{Stream: events.DefaultStream})
	if _, err := publish.Publish(t.Context(), eventstest.Events(1, 7)[0]); err != nil {
		t.Error("operator publishes:", err)
	}
	names, listed := js.StreamNames(t.Context()), 0
	for range names.Name() {
		listed++
	}
	if listed != 3 || names.Err() != nil {
		t.Error("operator lists streams:", listed, names.Err())
	}
	clean("operator")
}

// awaitSnapshot waits until a replica's user sees the first snapshot in the bucket.
func awaitSnapshot(t *testing.T, c *cluster) {
	t.Helper()
	list := append([]string{"snapshot", "list"}, c.as("replica")...)
	var listed string
	until(t, func() string { return "a snapshot is listed; the list is " + listed }, func() bool {
		listed = output(t, registry, list...)
		return strings.Contains(listed, "201")
	})
}

// snapshotWork is what the snapshot writer and a replica do with the bucket.
func snapshotWork(t *testing.T, c *cluster) {
	t.Helper()
	bucket, err := jetStream(t, c.connect(t, "snapshots")).ObjectStore(t.Context(), "REGISTRY_SNAPSHOTS")
	if err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("snapshot"), 100_000)
	for _, name := range []string{"a", "b"} {
		if _, err := bucket.PutBytes(t.Context(), name, content); err != nil {
			t.Fatal("the writer writes:", err)
		}
	}
	if err := bucket.Delete(t.Context(), "a"); err != nil {
		t.Error("the writer deletes:", err)
	}
	read, err := jetStream(t, c.connect(t, "replica")).ObjectStore(t.Context(), "REGISTRY_SNAPSHOTS")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := read.List(t.Context()); err != nil || len(all) < 2 { // the server's, too
		t.Error("a replica lists:", all, err)
	}
	if got, err := read.GetBytes(t.Context(), "b"); err != nil || !bytes.Equal(got, content) {
		t.Error("a replica reads:", len(got), err)
	}
}

// createStreams makes them from the files that an operator uses, twice: what is there is left alone. The files are what the
// program would make itself, but for the epoch.
func createStreams(t *testing.T, c *cluster, operator *nats.Conn) {
	t.Helper()
	js := jetStream(t, operator)
	for name, want := range map[string]jetstream.StreamConfig{
		"REGISTRY":               events.StreamConfig(events.DefaultStream, 3, events.DefaultHistory, ""),
		"REGISTRY_REJECTED":      events.RejectedStreamConfig(3),
		"OBJ_REGISTRY_SNAPSHOTS": {},
	} {
		cfg := streamFile(t, name)
		want.Metadata = nil
		if name != "OBJ_REGISTRY_SNAPSHOTS" && !reflect.DeepEqual(cfg, want) {
			t.Errorf("%s.json:\n%+v, want\n%+v", name, cfg, want)
		}
		cfg.Replicas = 1 // of this test's one node
		for range 2 {
			if _, err := js.CreateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func streamFile(t *testing.T, name string) (cfg jetstream.StreamConfig) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("nats", "streams", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&cfg); err != nil {
		t.Fatalf("%s.json: %v", name, err)
	}
	return cfg
}

// The bucket's stream is what the client library makes of a bucket.
func TestBucketFile(t *testing.T) {
	b := eventstest.Broker(t)
	js := eventstest.Connect(t, b)
	cfg := streamFile(t, "OBJ_REGISTRY_SNAPSHOTS")
	if _, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "REGISTRY_SNAPSHOTS", Replicas: 1, Description: cfg.Description}); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "OBJ_REGISTRY_SNAPSHOTS")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Replicas = 1
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Errorf("%v: the file has %+v, the library makes %+v", err, cfg, stream.CachedInfo().Config)
	}
}

// A replica may not create the stream, and says what it may not.
func TestReplicaWithoutAStream(t *testing.T) {
	c := startNode(t)
	r := serve(t, c.as("replica")...)
	await(t, r.Admin+"/projection", `$JS.API.STREAM.CREATE.REGISTRY`)
	if strings.Contains(r.said(), "nats: ") {
		t.Error("the library prints past the log")
	}
	if status, _, body := get(t, r.Admin+"/readyz", nil); status != 503 {
		t.Errorf("ready without a stream: %d %s", status, body)
	}
	createStreams(t, c, c.connect(t, "operator"))
	await(t, r.Admin+"/readyz", "")
}

// What a command may not is an error with status 1 that names it.
func TestReplicaMayNotPublish(t *testing.T) {
	c := startNode(t)
	createStreams(t, c, c.connect(t, "operator"))
	cmd := exec.Command(registry, append([]string{"publish", eventFile(t, 3)}, c.as("replica")...)...)
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v: %s", err, said)
	}
	if !strings.Contains(string(said), "may not publish to registry.") {
		t.Errorf("%s", said)
	}
	if info, err := jetStream(t, c.connect(t, "operator")).Stream(t.Context(), "REGISTRY"); err != nil || info.CachedInfo().State.Msgs != 0 {
		t.Error("a replica has published", err)
	}
}

func jetStream(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return js
}
