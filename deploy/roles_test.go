package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/stream"
)

// Each role does its work with the program's commands, and the broker refuses nothing. A refused command names the
// permission that its user lacks.
func TestRolesAtWork(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	operator := c.connect(t, "operator")
	createStreams(t, operator)

	publisher := c.connect(t, "publisher")
	mistakes, err := publisher.SubscribeSync("registry-rejected.>")
	require.NoError(t, err)
	file := eventFile(t, 200)
	require.Contains(t, c.run(t, "publisher", "publish "+file), "200 sent")
	require.Contains(t, c.run(t, "publisher", "publish "+file), "0 sent, 200 already there")
	eventstest.PublishRaw(t, jetStream(t, publisher), "registry.scammers.bad", []byte("nonsense"))

	writer := serve(t, append(c.as("snapshots"), "--snapshot-every=0")...)
	await(t, writer.Admin+"/projection", `"checkpoint":201,`)
	await(t, writer.Admin+"/projection", `"rejected":1,`)
	_, err = mistakes.NextMsg(registrytest.Patience)
	require.NoError(t, err, "the publisher hears of its mistakes")
	answer, err := publisher.Request(events.ValidateSubject, []byte("nonsense"), registrytest.Patience)
	require.NoError(t, err)
	require.Contains(t, string(answer.Data), `{"valid":false,"reason":"event: not JSON`)

	admin := "--admin-addr=" + writer.AdminAddr()
	snapshot, _, _ := strings.Cut(output(t, registry, "snapshot", "create", admin), ":")
	for _, role := range []string{"replica", "snapshots", "operator"} {
		for _, order := range []struct{ line, says string }{
			{"verify " + admin, "no difference"},
			{"snapshot list", snapshot},
			{"snapshot verify " + snapshot, "good"},
			{"snapshot restore --data-dir=" + t.TempDir() + " " + snapshot, "restored"},
			{"export " + snapshot, "registry.entry.listed"},
			{"rejected list", "registry.scammers.bad"},
		} {
			require.Contains(t, c.run(t, role, order.line), order.says, "%s: %s", role, order.line)
		}
	}

	replica := serve(t, append(c.as("replica"), "--snapshot-every=0")...)
	await(t, replica.Admin+"/readyz", "")
	await(t, replica.HTTP+"/api/status", `"ok":true`)
	require.Contains(t, replica.Log(), "starting from a snapshot")

	rejected, err := jetStream(t, operator).Stream(t.Context(), events.RejectedStream)
	require.NoError(t, err)
	require.NoError(t, rejected.Purge(t.Context()), "the operator clears rejected events")
	require.Empty(t, c.log.take(), "refused")

	refused := exec.CommandContext(t.Context(), registry, append([]string{"publish", eventFile(t, 220)}, c.as("replica")...)...)
	said, err := refused.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "this user of the broker may not publish to registry.")
}

// createStreams creates the streams from the files that an operator uses. Apart from the epoch, the files say what the
// program would create.
func createStreams(t *testing.T, operator *nats.Conn) {
	t.Helper()
	require.Equal(t, stream.RejectedConfig(3), streamFile(t, "REGISTRY_REJECTED"))
	want := stream.Config(events.DefaultStream, 3, events.DefaultHistory, stream.Identity{Epoch: "E"})
	want.Metadata = nil
	require.Equal(t, want, streamFile(t, "REGISTRY"))

	for _, name := range streams() {
		cfg := streamFile(t, name)
		cfg.Replicas = 1 // of this test's one node
		_, err := jetStream(t, operator).CreateStream(t.Context(), cfg)
		require.NoError(t, err)
	}
}

func streams() []string { return []string{"REGISTRY", "REGISTRY_REJECTED", "OBJ_REGISTRY_SNAPSHOTS"} }

func streamFile(t *testing.T, name string) (cfg jetstream.StreamConfig) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("nats", "streams", name+".json"))
	require.NoError(t, err)
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	require.NoError(t, in.Decode(&cfg), name)
	return cfg
}

// create.sh creates what is missing from its files, and gives each stream of events an epoch of its own. A stand-in for the
// nats command has only the rejected stream, and keeps what it is to add.
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
		t.Setenv("OUT", added)
		t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		output(t, "sh", filepath.Join("nats", "streams", "create.sh"))
		require.NoFileExists(t, filepath.Join(added, "REGISTRY_REJECTED"))
		for _, name := range []string{"REGISTRY", "OBJ_REGISTRY_SNAPSHOTS"} {
			text, err := os.ReadFile(filepath.Join(added, name))
			require.NoError(t, err)
			var cfg jetstream.StreamConfig
			require.NoError(t, json.Unmarshal(text, &cfg), "%s", text)
			if name == "REGISTRY" {
				epochs[cfg.Metadata[events.MetadataEpoch]] = true
			}
			cfg.Metadata = nil
			require.Equal(t, streamFile(t, name), cfg)
		}
	}
	require.Len(t, epochs, 2)
	for epoch := range epochs {
		require.Len(t, epoch, 32)
	}
}

func jetStream(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(registrytest.Patience))
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

// A role may do what its line says and nothing else. Nobody publishes into another's inbox or subscribes to it.
func TestPowers(t *testing.T) {
	t.Parallel()
	c := startNode(t)
	publish := powers()
	for _, role := range roles() {
		publish["_INBOX."+role+".x"] = ""
	}
	for _, role := range roles() {
		t.Run(role, func(t *testing.T) {
			nc := c.connect(t, role)
			for subject, may := range publish {
				if role == "sys" && !strings.HasPrefix(subject, "$SYS") {
					continue // in an account without JetStream and without the registry
				}
				require.Equal(t, named(may, role), allowed(t, nc, subject, func() error { return nc.Publish(subject, nil) }), "publishes to %s", subject)
			}
			for subject, may := range ears() {
				require.Equal(t, named(may, role), mayHear(t, nc, subject), "listens to %s", subject)
			}
		})
	}
}

func named(roles, role string) bool { return slices.Contains(strings.Fields(roles), role) }

func mayHear(t *testing.T, nc *nats.Conn, subject string) bool {
	t.Helper()
	return allowed(t, nc, subject, func() error {
		sub, err := nc.SubscribeSync(subject)
		t.Cleanup(func() { _ = sub.Unsubscribe() }) // the connection may have been closed before
		return err
	})
}

// allowed reports whether the broker accepted it. A refusal comes before the answer to the flush.
func allowed(t *testing.T, nc *nats.Conn, subject string, try func() error) bool {
	t.Helper()
	require.NoError(t, try(), subject)
	require.NoError(t, nc.Flush(), subject)
	refused := nc.LastError()
	return refused == nil || !strings.Contains(refused.Error(), `"`+subject+`"`)
}
