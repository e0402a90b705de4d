//go:build nightly

package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// edge is an origin and, behind a leaf node's connection that can be cut, an edge.
type edge struct {
	origin, here *cluster
	way          *eventstest.Relay
	publisher    jetstream.JetStream // at the origin
}

// startEdge starts both brokers, makes the streams as their files and scripts say, and publishes.
func startEdge(t *testing.T, evs ...events.Event) *edge {
	t.Helper()
	e := &edge{origin: startNodeFrom(t, func() (*server.Options, error) { return withLeafNodes(t), nil })}
	createStreams(t, e.origin.connect(t, "operator"))
	setEpoch(t, e.origin)
	e.publisher = jetStream(t, e.origin.connect(t, "publisher"))
	eventstest.Publish(t, e.publisher, evs...)

	varz, err := e.origin.server.Varz(nil)
	require.NoError(t, err)
	if e.way, err = eventstest.StartRelay(fmt.Sprintf("127.0.0.1:%d", varz.LeafNode.Port)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.way.Close)
	seed, err := os.ReadFile(filepath.Join(secrets, "edge.nk"))
	require.NoError(t, err)
	e.here = startNodeFrom(t, func() (*server.Options, error) {
		config, err := os.ReadFile("nats/edge/edge.conf")
		if err != nil {
			return nil, err
		}
		text := strings.NewReplacer("$NATS_ORIGIN", `"nats-leaf://`+e.way.Addr()+`"`, "$NATS_EDGE_SEED", `"`+strings.TrimSpace(string(seed))+`"`).Replace(string(config))
		file := filepath.Join(t.TempDir(), "edge.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		return server.ProcessConfigFile(file)
	})
	e.mirror(t)
	return e
}

// setEpoch gives the origin's stream an epoch, as create.sh does.
func setEpoch(t *testing.T, c *cluster) {
	t.Helper()
	js := jetStream(t, c.connect(t, "emergency"))
	cfg := streamFile(t, "REGISTRY")
	cfg.Replicas, cfg.Metadata = 1, map[string]string{events.MetadataEpoch: events.NewEpoch()}
	_, err := js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
}

// mirror creates the mirror by edge/create.sh, with a stand-in for the nats command that does at the
// edge what the command is told to.
func (e *edge) mirror(t *testing.T) {
	t.Helper()
	nc := e.here.connect(t, "edge")
	origin, err := jetstream.NewWithDomain(nc, "registry")
	require.NoError(t, err)
	var info []byte
	until(t, func() string { return "the edge reaches the origin's stream" }, func() bool {
		s, err := origin.Stream(t.Context(), events.DefaultStream)
		if err == nil {
			info, err = json.MarshalIndent(s.CachedInfo(), "", "  ")
		}
		return err == nil
	})
	dir := t.TempDir()
	err = errors.Join(os.WriteFile(filepath.Join(dir, "info"), info, 0o600), os.WriteFile(filepath.Join(dir, "nats"), []byte(`#!/bin/sh
case "$*" in
"--inbox-prefix _INBOX.edge --js-domain registry stream info REGISTRY --json") cat "$DIR/info" ;;
"--inbox-prefix _INBOX.edge stream info EDGE") exit 1 ;;
"--inbox-prefix _INBOX.edge stream add EDGE --config /dev/stdin") cat > "$DIR/added" ;;
*) exit 2 ;;
esac`), 0o700))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join("nats", "edge", "create.sh"))
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var cfg jetstream.StreamConfig
	text, err := os.ReadFile(filepath.Join(dir, "added"))
	if err = errors.Join(err, json.Unmarshal(text, &cfg)); err != nil || len(cfg.Metadata[events.MetadataEpoch]) < 20 {
		t.Fatalf("%v: %s", err, text)
	}
	_, err = jetStream(t, nc).CreateStream(t.Context(), cfg)
	require.NoError(t, err)
}

// serve starts a server of the edge.
func (e *edge) serve(t *testing.T, dir string) *registrytest.Server {
	t.Helper()
	return start(t, exec.Command(registry, append([]string{"serve", "--stream=EDGE", "--data-dir=" + dir, "--http-addr=127.0.0.1:0",
		"--admin-addr=127.0.0.1:0", "--log-format=json"}, e.here.as("edge")...)...))
}

// publish publishes at the origin.
func (e *edge) publish(t *testing.T, id string, data events.Data, typ events.Type) (sequence uint64) {
	t.Helper()
	return eventstest.Publish(t, e.publisher, events.Event{ID: id, Source: "https://moderation.example", Type: typ, Data: data})
}

// messages counts what the edge's stream has of a subject.
func (e *edge) messages(t *testing.T, subject string) uint64 {
	t.Helper()
	s, err := jetStream(t, e.here.connect(t, "edge")).Stream(t.Context(), "EDGE")
	require.NoError(t, err)
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(subject))
	require.NoError(t, err)
	return info.State.Subjects[subject]
}

// TestEdge: a replica of a mirror at the end of a leaf node answers as the origin does, goes on while
// the way to the origin is cut, and takes back and erases what was delisted meanwhile.
func TestEdge(t *testing.T) {
	t.Parallel()
	all := eventstest.Entries(50, 1)
	all[0].List, all[0].Verified = events.Scammers, true
	var evs []events.Event
	for _, entry := range all {
		evs = append(evs, eventstest.Listed(entry, 1))
	}
	e := startEdge(t, append(evs, eventstest.Listed(all[0], 2))...)
	dir := t.TempDir()
	r := e.serve(t, dir)
	await(t, r.Admin+"/readyz", "")
	if strings.Contains(r.Log(), "stream differs") {
		t.Error("warned of what a mirror cannot have")
	}

	person := all[0]
	check := r.HTTP + "/api/check?id=" + url.QueryEscape(person.ChatID)
	subject := person.Subject().String()
	person.Reason, person.Revision = "Changed at the origin.", 3
	sequence := e.publish(t, "changed", person, events.TypeAmended)
	written := http.Header{"Registry-Min-Sequence": {fmt.Sprint(sequence)}}
	if status, _, body := get(t, check, written); status != http.StatusOK || !strings.Contains(body, "Changed at the origin.") {
		t.Errorf("the origin's sequence: %d %s", status, body)
	}

	e.way.Away(true)
	sequence = e.publish(t, "delisted", events.Delisting{Revision: 4, List: person.List, EntryID: person.EntryID}, events.TypeDelisted)
	written = http.Header{"Registry-Min-Sequence": {fmt.Sprint(sequence)}}
	if status, _, body := get(t, check, written); status != http.StatusServiceUnavailable {
		t.Errorf("an origin's sequence that has not come: %d %s", status, body)
	}
	if status, _, body := get(t, check, nil); status != http.StatusOK || !strings.Contains(body, "Changed at the origin.") {
		t.Errorf("while the way is cut: %d %s", status, body)
	}
	r.End(syscall.SIGTERM)
	r = e.serve(t, dir)
	await(t, r.Admin+"/readyz", "")

	e.way.Away(false)
	check = r.HTTP + "/api/check?id=" + url.QueryEscape(person.ChatID)
	await(t, check, `"results":[]`)
	until(t, func() string { return "only the tombstone is left at the edge" }, func() bool { return e.messages(t, subject) == 1 })
	await(t, r.Admin+"/projection", `"lastError":null`)
	for _, c := range []*cluster{e.origin, e.here} {
		if seen := c.log.take(); len(seen) > 0 {
			t.Error("refused:", strings.Join(seen, "\n"))
		}
	}
}

// TestEdgePowers: what is published at an edge stays there, and the origin's answers to others do
// not go there.
func TestEdgePowers(t *testing.T) {
	t.Parallel()
	e := startEdge(t)
	key, err := nats.NkeyOptionFromSeed(filepath.Join(secrets, "edge.nk"))
	require.NoError(t, err)
	if _, err := nats.Connect(e.origin.server.ClientURL(), key); err == nil {
		t.Error("the edge's key connects as a client")
	}
	origin, here := e.origin.connect(t, "operator"), e.here.connect(t, "edge")
	heard, err := origin.SubscribeSync("registry-rejected.>")
	require.NoError(t, err)
	require.NoError(t, errors.Join(origin.Flush(), here.Publish("registry-rejected.e.1", nil), here.Flush()))
	// What was published before this request's answer would have come before it.
	_, err = here.Request("$JS.registry.API.STREAM.INFO.REGISTRY", nil, registrytest.Patience)
	require.NoError(t, err)
	if n, _, err := heard.Pending(); err != nil || n > 0 {
		t.Error("the origin heard of it:", n, err)
	}
	for subject, may := range map[string]bool{
		"registry.scammers.x": false, "registry.history": false, "$JS.registry.API.STREAM.DELETE.REGISTRY": false,
		"$JS.registry.API.STREAM.PURGE.REGISTRY": false, "$JS.API.STREAM.CREATE.EDGE": true,
	} {
		require.Equal(t, may, allowed(t, here, subject, func() error { return here.Publish(subject, nil) }), "publishes to %s", subject)
	}
	for _, subject := range []string{"_INBOX.operator.>", "registry.>", ">"} {
		require.False(t, mayHear(t, here, subject), "listens to %s", subject)
	}
}
