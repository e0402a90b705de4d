package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
	"example.org/registry/events/stream"
)

// TestRolesAtWork: each role does its work, with the program's commands where there are some, and
// the server refuses nothing.
func TestRolesAtWork(t *testing.T) {
	t.Parallel()
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
	require.NoError(t, err)
	said := output(t, registry, append([]string{"publish", eventFile(t, 200)}, c.as("publisher")...)...)
	if !strings.Contains(said, "200 sent") {
		t.Error(said)
	}
	if said := output(t, registry, append([]string{"publish", eventFile(t, 200)}, c.as("publisher")...)...); !strings.Contains(said, "0 sent, 200 already there") {
		t.Errorf("what the stream has is sent again: %s", said)
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
	if _, err := mistakes.NextMsg(registrytest.Patience); err != nil {
		t.Error("the publisher hears of no mistake:", err)
	}
	if m, err := publisher.Request(events.ValidateSubject, []byte("nonsense"), registrytest.Patience); err != nil || !strings.Contains(string(m.Data), `{"valid":false,"reason":"event: not JSON`) {
		t.Error("the publisher asks whether an event is valid:", err)
	}
	clean("replicas serve")
	awaitSnapshot(t, c)
	clean("the server's own snapshots")

	js := jetStream(t, operator)
	rejected, err := js.Stream(t.Context(), events.RejectedStream)
	require.NoError(t, err)
	if err := rejected.Purge(t.Context()); err != nil {
		t.Error("operator clears rejected events:", err)
	}
	publish := publish.New(js, publish.Config{Stream: events.DefaultStream})
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

// createStreams creates the streams from the files that an operator uses, twice, since create.sh
// leaves existing ones alone. Apart from the epoch, the files say what the program would create.
func createStreams(t *testing.T, c *cluster, operator *nats.Conn) {
	t.Helper()
	js := jetStream(t, operator)
	for name, want := range map[string]jetstream.StreamConfig{
		"REGISTRY":               stream.Config(events.DefaultStream, 3, events.DefaultHistory, stream.Identity{Epoch: "E"}),
		"REGISTRY_REJECTED":      stream.RejectedConfig(3),
		"OBJ_REGISTRY_SNAPSHOTS": {},
	} {
		cfg := streamFile(t, name)
		want.Metadata = nil
		if name != "OBJ_REGISTRY_SNAPSHOTS" && !reflect.DeepEqual(cfg, want) {
			t.Errorf("%s.json:\n%+v, want\n%+v", name, cfg, want)
		}
		cfg.Replicas = 1 // of this test's one node
		for range 2 {
			_, err := js.CreateStream(t.Context(), cfg)
			require.NoError(t, err)
		}
	}
}

func streamFile(t *testing.T, name string) (cfg jetstream.StreamConfig) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("nats", "streams", name+".json"))
	require.NoError(t, err)
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&cfg); err != nil {
		t.Fatalf("%s.json: %v", name, err)
	}
	return cfg
}

// TestCreateScript: create.sh creates what is missing, and gives the stream of events an epoch of its
// own. A stand-in for the nats command has only the rejected stream, and keeps what it is to add.
func TestCreateScript(t *testing.T) {
	dir := t.TempDir()
	standIn := `#!/bin/sh
case "$*" in
*"stream info REGISTRY_REJECTED") ;;
*"stream info "*) exit 1 ;;
*) cat "$7" > "$OUT/$5" ;;
esac`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nats"), []byte(standIn), 0o700))
	epochs := map[string]bool{}
	for range 2 {
		added := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join("nats", "streams", "create.sh"))
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "OUT="+added)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		files, err := os.ReadDir(added)
		if err != nil || len(files) != 2 {
			t.Fatal("created:", files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(added, file.Name()))
			require.NoError(t, err)
			var cfg jetstream.StreamConfig
			if err := json.Unmarshal(text, &cfg); err != nil {
				t.Fatalf("%s: %v: %s", file.Name(), err, text)
			}
			if epoch := cfg.Metadata[events.MetadataEpoch]; file.Name() == "REGISTRY" {
				epochs[epoch] = len(epoch) == 32
			}
			if cfg.Metadata = nil; !reflect.DeepEqual(cfg, streamFile(t, file.Name())) {
				t.Errorf("%s: %+v is not its file", file.Name(), cfg)
			}
		}
	}
	if len(epochs) != 2 {
		t.Error("epochs:", epochs)
	}
	for epoch, good := range epochs {
		if !good {
			t.Errorf("epoch %q", epoch)
		}
	}
}

// TestBucketFile: the bucket's file says what the client library makes of a bucket.
func TestBucketFile(t *testing.T) {
	b := eventstest.Broker(t)
	js := eventstest.Connect(t, b)
	cfg := streamFile(t, "OBJ_REGISTRY_SNAPSHOTS")
	_, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "REGISTRY_SNAPSHOTS", Replicas: 1, Description: cfg.Description})
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "OBJ_REGISTRY_SNAPSHOTS")
	require.NoError(t, err)
	cfg.Replicas = 1
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Errorf("%v: the file has %+v, the library makes %+v", err, cfg, stream.CachedInfo().Config)
	}
}

// TestReplicaWithoutAStream: a replica may not create the stream, and says so.
func TestReplicaWithoutAStream(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	r := serve(t, c.as("replica")...)
	await(t, r.Admin+"/projection", `$JS.API.STREAM.CREATE.REGISTRY`)
	if strings.Contains(r.Log(), "nats: ") {
		t.Error("the library prints past the log")
	}
	if status, _, body := get(t, r.Admin+"/readyz", nil); status != 503 {
		t.Errorf("ready without a stream: %d %s", status, body)
	}
	createStreams(t, c, c.connect(t, "operator"))
	await(t, r.Admin+"/readyz", "")
}

func jetStream(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(5*time.Second))
	require.NoError(t, err)
	return js
}

// powers maps subjects to the roles that may publish to them. The others must be refused.
func powers() map[string]string {
	const api = "$JS.API."
	return map[string]string{
		"registry.scammers.x":             "publisher snapshots operator emergency",
		"registry.views.servers.x":        "publisher snapshots operator emergency",
		"registry.other":                  "operator emergency",
		"registry-rejected.e.1":           "replica snapshots",
		"registry-validate":               "publisher operator",
		"$SRV.PING":                       "",
		"$O.REGISTRY_SNAPSHOTS.M.x":       "snapshots",
		"$O.REGISTRY_SNAPSHOTS.C.x":       "snapshots",
		"$O.OTHER.C.x":                    "",
		"other":                           "",
		"$SYS.REQ.SERVER.PING":            "sys",
		"$SYS.REQ.ACCOUNT.REGISTRY.CONNZ": "sys",

		api + "INFO":                                       "publisher replica snapshots operator emergency",
		api + "STREAM.INFO.REGISTRY":                       "publisher replica snapshots operator emergency",
		api + "STREAM.INFO.OBJ_REGISTRY_SNAPSHOTS":         "replica snapshots operator emergency",
		api + "STREAM.INFO.OTHER":                          "operator emergency",
		api + "STREAM.NAMES":                               "operator emergency",
		api + "STREAM.CREATE.REGISTRY":                     "operator emergency",
		api + "STREAM.CREATE.REGISTRY_REJECTED":            "operator emergency",
		api + "STREAM.CREATE.OBJ_REGISTRY_SNAPSHOTS":       "operator emergency",
		api + "STREAM.CREATE.OTHER":                        "emergency",
		api + "STREAM.UPDATE.REGISTRY":                     "emergency",
		api + "STREAM.PURGE.REGISTRY":                      "snapshots emergency",
		api + "STREAM.DELETE.REGISTRY":                     "emergency",
		api + "STREAM.MSG.DELETE.REGISTRY":                 "emergency",
		api + "STREAM.RESTORE.REGISTRY":                    "emergency",
		api + "STREAM.SNAPSHOT.REGISTRY":                   "emergency",
		api + "STREAM.LEADER.STEPDOWN.REGISTRY":            "operator emergency",
		api + "STREAM.PEER.REMOVE.REGISTRY":                "operator emergency",
		api + "STREAM.PURGE.REGISTRY_REJECTED":             "operator emergency",
		api + "STREAM.DELETE.REGISTRY_REJECTED":            "emergency",
		api + "STREAM.UPDATE.OBJ_REGISTRY_SNAPSHOTS":       "emergency",
		api + "STREAM.PURGE.OBJ_REGISTRY_SNAPSHOTS":        "snapshots emergency",
		api + "STREAM.DELETE.OBJ_REGISTRY_SNAPSHOTS":       "emergency",
		api + "STREAM.MSG.GET.REGISTRY":                    "publisher replica snapshots operator emergency",
		api + "STREAM.MSG.GET.REGISTRY_REJECTED":           "publisher replica snapshots operator emergency",
		api + "DIRECT.GET.REGISTRY":                        "publisher operator emergency",
		api + "DIRECT.GET.OBJ_REGISTRY_SNAPSHOTS":          "replica snapshots operator emergency",
		api + "DIRECT.GET.REGISTRY_REJECTED":               "operator emergency",
		api + "CONSUMER.CREATE.REGISTRY.x":                 "replica snapshots operator emergency",
		api + "CONSUMER.DURABLE.CREATE.REGISTRY.x":         "emergency",
		api + "CONSUMER.CREATE.REGISTRY_REJECTED.x":        "operator emergency",
		api + "CONSUMER.CREATE.OTHER.x":                    "emergency",
		api + "CONSUMER.CREATE.OBJ_REGISTRY_SNAPSHOTS.x.>": "operator emergency",
		api + "CONSUMER.MSG.NEXT.REGISTRY.x":               "replica snapshots operator emergency",
		api + "CONSUMER.DELETE.REGISTRY.x":                 "replica snapshots operator emergency",
		api + "CONSUMER.DELETE.OTHER.x":                    "operator emergency",
		api + "ACCOUNT.PURGE.REGISTRY":                     "emergency",
	}
}

// ears maps subjects to the roles that may subscribe to them.
func ears() map[string]string {
	heard := map[string]string{
		">":                   "sys",
		"_INBOX.>":            "sys",
		"registry.>":          "operator sys",
		"registry-rejected.>": "publisher operator sys",
		"registry-validate":   "replica snapshots sys",
		"$SRV.PING":           "replica snapshots sys",
		"$SRV.>":              "sys",
		"$O.>":                "sys",
		"$JS.API.>":           "sys",
		"$JS.EVENT.>":         "sys",
		"$SYS.>":              "sys",
	}
	for _, role := range roles() {
		heard["_INBOX."+role+".>"] = role + " sys" // sys is in an account of its own: it hears nothing of the registry's
	}
	return heard
}

func roles() []string {
	return []string{"publisher", "replica", "snapshots", "operator", "emergency", "sys"}
}

// TestPowers: a role may do what its line says and nothing else. Nobody publishes into another's
// inbox or subscribes to it.
func TestPowers(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	for _, role := range roles() {
		nc := c.connect(t, role)
		for subject, may := range powers() {
			if role == "sys" && !strings.HasPrefix(subject, "$SYS") {
				continue // in an account without JetStream and without the registry
			}
			compare(t, role+" publishes to "+subject, named(may, role), allowed(t, nc, subject, func() error { return nc.Publish(subject, nil) }))
		}
		for _, other := range roles() {
			if subject := "_INBOX." + other + ".x"; role != "sys" {
				compare(t, role+" publishes to "+subject, false, allowed(t, nc, subject, func() error { return nc.Publish(subject, nil) }))
			}
		}
		for subject, may := range ears() {
			compare(t, role+" listens to "+subject, named(may, role), allowed(t, nc, subject, func() error {
				sub, err := nc.SubscribeSync(subject)
				t.Cleanup(func() { _ = sub.Unsubscribe() }) // the connection may have been closed before
				return err
			}))
		}
	}
}

func named(roles, role string) bool { return slices.Contains(strings.Fields(roles), role) }

func compare(t *testing.T, what string, want, got bool) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// allowed reports whether the server accepted it. A refusal comes before the answer to the flush.
func allowed(t *testing.T, nc *nats.Conn, subject string, try func() error) bool {
	t.Helper()
	if err := try(); err != nil {
		t.Fatal(subject, err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(subject, err)
	}
	refused := nc.LastError()
	return refused == nil || !strings.Contains(refused.Error(), `"`+subject+`"`)
}

// order is a command line and what each role gets.
type order struct {
	args []string
	may  string // roles that may give it
	says string // on standard output, to them
	lack string // the permission that a refusal names to the others
}

const info, create, message = "$JS.API.STREAM.INFO.", "$JS.API.CONSUMER.CREATE.", "$JS.API.STREAM.MSG.GET."

// orders returns the commands that connect to the broker.
func orders(t *testing.T, snapshot, admin string) []order {
	t.Helper()
	const readers = "replica snapshots operator"
	return []order{
		{[]string{"publish", ownEvents}, "publisher snapshots operator", "sent", "publish to registry."},
		{[]string{"verify", "--admin-addr=" + admin}, readers, "no difference", create + "REGISTRY."},
		{[]string{"snapshot", "list"}, readers, snapshot, info + "OBJ_REGISTRY_SNAPSHOTS"},
		{[]string{"snapshot", "verify", snapshot}, readers, "good", message + "OBJ_REGISTRY_SNAPSHOTS"},
		{[]string{"snapshot", "restore", dataDir, snapshot}, readers, "restored", message + "OBJ_REGISTRY_SNAPSHOTS"},
		{[]string{"export", snapshot}, readers, "registry.entry.listed", message + "OBJ_REGISTRY_SNAPSHOTS"},
		{[]string{"rejected", "list"}, readers, "registry.scammers.bad", "REGISTRY_REJECTED"},
	}
}

// TestOrders: each role gives every order, with the committed accounts. An order it may not give
// ends with status 1 and one line that names the permission.
func TestOrders(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	operator := c.connect(t, "operator")
	createStreams(t, c, operator)
	js := jetStream(t, operator)
	eventstest.Publish(t, js, eventstest.Events(199, 1)...)
	eventstest.PublishRaw(t, js, "registry.scammers.bad", []byte("{}"))
	writer := serve(t, append(c.as("snapshots"), "--snapshot-every=0")...)
	await(t, writer.Admin+"/projection", `"rejected":1,`)
	admin := writer.AdminAddr()
	made := output(t, registry, "snapshot", "create", "--admin-addr="+admin)
	snapshot, _, _ := strings.Cut(made, ":")

	var group errgroup.Group // a refused command mostly waits for an answer
	group.SetLimit(16)
	for _, o := range orders(t, snapshot, admin) {
		for _, role := range []string{"publisher", "replica", "snapshots", "operator"} {
			group.Go(func() error { c.give(t, role, o); return nil })
		}
	}
	_ = group.Wait() // give reports for itself

	late := serve(t, append(c.as("replica"), "--snapshot-every=0")...)
	await(t, late.Admin+"/readyz", "")
	if !strings.Contains(late.Log(), "starting from a snapshot") {
		t.Error("a new replica does not start from the snapshot")
	}
}

// Placeholders that give replaces with a new directory, and with a file of events that no other role
// publishes.
const (
	dataDir   = "--data-dir=NEW"
	ownEvents = "EVENTS"
)

func (c *cluster) give(t *testing.T, role string, o order) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), registrytest.Patience)
	defer cancel()
	args := append(slices.Clone(o.args), c.as(role)...)
	if i := slices.Index(args, dataDir); i >= 0 {
		args[i] = "--data-dir=" + t.TempDir()
	}
	if i := slices.Index(args, ownEvents); i >= 0 {
		from := 200 + 20*slices.Index([]string{"publisher", "replica", "snapshots", "operator"}, role)
		args[i] = writeEvents(t, eventstest.Events(300, 1)[from:from+20])
	}
	cmd := exec.CommandContext(ctx, registry, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	said, err := cmd.Output()
	what := role + ": registry " + strings.Join(o.args, " ")
	if named(o.may, role) {
		if err != nil || !strings.Contains(string(said), o.says) {
			t.Errorf("%s: %v: %.300s %s", what, err, said, complaint.String())
		}
		return
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("%s: %v, want status 1", what, err)
	}
	if text := complaint.String(); !strings.Contains(text, "this user of the broker may not publish to") || !strings.Contains(text, o.lack) {
		t.Errorf("%s: %s, want that it lacks %s", what, text, o.lack)
	}
}

// TestReplicaMayNotMakeSnapshots: a replica told to make snapshots says once which permission it
// lacks and what to do, and goes on.
func TestReplicaMayNotMakeSnapshots(t *testing.T) {
	eventstest.Long(t)
	t.Parallel()
	c := startNode(t)
	operator := c.connect(t, "operator")
	createStreams(t, c, operator)
	eventstest.Publish(t, jetStream(t, operator), eventstest.Events(20, 1)...)
	r := serve(t, append(c.as("replica"), "--snapshot-every=1s")...)
	await(t, r.Admin+"/projection", `"checkpoint":20,`)
	const why = "may not publish to $O.REGISTRY_SNAPSHOTS.C.>; where another server makes the snapshots, give this one --snapshot-every 0"
	await(t, r.Admin+"/metrics", "registry_snapshot_failures_total 2")
	if n := strings.Count(r.Log(), why); n != 1 {
		t.Errorf("said %d times", n)
	}
	await(t, r.Admin+"/readyz", "")
	var asked []byte
	until(t, func() string { return "an operator is told: " + string(asked) }, func() bool { // refused while the server tries by itself
		var err error
		asked, err = exec.CommandContext(t.Context(), registry, "snapshot", "create", "--admin-addr="+r.AdminAddr()).CombinedOutput()
		return err != nil && strings.Contains(string(asked), "$O.REGISTRY_SNAPSHOTS.C.>")
	})
}

// TestRecoverMayNotUpdate: recover as a user who may not update the stream ends soon with status 1,
// and names the right that it lacks; the emergency key has it.
func TestRecoverMayNotUpdate(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	createStreams(t, c, c.connect(t, "operator"))
	eventstest.Publish(t, jetStream(t, c.connect(t, "operator")), eventstest.Events(20, 1)...)
	r := serve(t, append(c.as("replica"), "--snapshot-every=0")...)
	await(t, r.Admin+"/projection", `"checkpoint":20,`)
	stream, err := jetStream(t, c.connect(t, "emergency")).Stream(t.Context(), "REGISTRY")
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), registrytest.Patience)
	defer cancel()
	recover := func(role string) (string, error) {
		said, err := exec.CommandContext(ctx, registry, append([]string{"recover", "--yes", "--admin-addr=" + r.AdminAddr()}, c.as(role)...)...).CombinedOutput()
		return string(said), err
	}
	said, err := recover("operator")
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(said, "this user of the broker may not publish to $JS.API.STREAM.UPDATE.REGISTRY") {
		t.Errorf("%v: %s", err, said)
	}
	said, err = recover("emergency")
	require.NoError(t, err, said)
	require.Contains(t, said, "published: 20;")
}
