package deploy

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
)

// harmful are reply subjects by which a role would do what its permissions do not let it do.
func harmful() []string {
	return []string{
		"$JS.API.STREAM.DELETE.REGISTRY", "$JS.API.STREAM.DELETE.OBJ_REGISTRY_SNAPSHOTS", "$JS.API.STREAM.DELETE.REGISTRY_REJECTED",
		"$JS.API.STREAM.PURGE.REGISTRY", "$JS.API.STREAM.PURGE.OBJ_REGISTRY_SNAPSHOTS", "$JS.API.STREAM.PURGE.REGISTRY_REJECTED",
		events.HistorySubject, "registry.scammers.victim", "$O.REGISTRY_SNAPSHOTS.M.forged", "$O.REGISTRY_SNAPSHOTS.C.forged", "registry-rejected.forged.1",
	}
}

// bodies are messages that make the broker answer in every way that it has: with nothing, with JSON,
// with a message that is stored, with a status, many times.
func bodies(stored uint64) []*nats.Msg {
	batch := nats.Header{"Nats-Batch-Id": {"b1"}, "Nats-Batch-Sequence": {"1"}}
	return []*nats.Msg{
		{}, {Header: batch, Data: []byte("x")}, {Data: []byte("{}")}, {Data: []byte("nonsense")},
		{Data: fmt.Appendf(nil, `{"seq":%d}`, stored)}, {Data: []byte(`{"seq":99999}`)}, {Data: []byte(`{"last_by_subj":"registry.scammers.empty"}`)},
		{Data: []byte(`{"batch":1,"no_wait":true}`)}, {Data: []byte(`{"batch":5,"expires":1000000}`)},
	}
}

// state is what there is to harm.
func state(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"REGISTRY", "OBJ_REGISTRY_SNAPSHOTS", "REGISTRY_REJECTED"} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			fmt.Fprintln(&b, name, err)
			continue
		}
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(">"))
		require.NoError(t, err)
		fmt.Fprintln(&b, name, "holds", slices.Sorted(maps.Keys(info.State.Subjects)))
	}
	return b.String()
}

// A role can do only what its account has: every user that machines hold, with every subject it may
// publish to, every answer of the broker and every reply subject that would do harm.
func TestRepliesDoNoHarm(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) *cluster{"one node": startNode, "three nodes": startThree} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, role := range []string{"publisher", "replica", "snapshots"} {
				t.Run(role, func(t *testing.T) { repliesDoNoHarm(t, start(t), role) })
			}
		})
	}
}

// The same for the publisher of a broker inside a server, whose configuration is the example.
func TestRepliesDoNoHarmEmbedded(t *testing.T) {
	t.Parallel()
	b := eventstest.Broker(t, func(c *broker.Config) { c.ConfigFile = "nats/embedded.conf" })
	repliesDoNoHarm(t, &cluster{url: b.ClientURL(), log: &violations{}}, "publisher")
}

func repliesDoNoHarm(t *testing.T, c *cluster, role string) {
	t.Helper()
	operator := jetStream(t, c.connect(t, "operator"))
	createStreams(t, c, operator.Conn())
	eventstest.Publish(t, operator, eventstest.Events(5, 1)...)
	marker := eventstest.PublishRaw(t, operator, events.HistorySubject, []byte("{}"))
	stored := eventstest.PublishRaw(t, operator, "registry.scammers.empty", nil)
	if role == "replica" || role == "snapshots" { // what it may deliver to itself
		_, err := jetStream(t, c.connect(t, role)).CreateConsumer(t.Context(), "REGISTRY", jetstream.ConsumerConfig{Name: "x", AckPolicy: jetstream.AckNonePolicy})
		require.NoError(t, err)
	}
	nc := c.connect(t, role)
	for subject, may := range powers() { // so that what the role stores itself is no change
		if named(may, role) && (strings.HasPrefix(subject, "registry.") || strings.HasPrefix(subject, "$O.") || strings.HasPrefix(subject, "registry-rejected.")) {
			_, err := nc.Request(subject, []byte("own"), 10*time.Second)
			require.NoError(t, err)
		}
	}
	before := state(t, operator)
	for subject, may := range powers() {
		if !named(may, role) || strings.Contains(subject, ".PURGE.") && role == "snapshots" {
			continue // its own request would purge
		}
		for _, reply := range harmful() {
			if named(powers()[reply], role) || reply == "registry.scammers.victim" && named(powers()["registry.scammers.x"], role) ||
				strings.HasPrefix(reply, "$O.") && named(powers()["$O.REGISTRY_SNAPSHOTS.M.x"], role) ||
				strings.HasPrefix(reply, "registry-rejected.") && named(powers()["registry-rejected.e.1"], role) {
				continue // it may do so without a reply
			}
			for _, m := range bodies(stored) {
				require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Header: m.Header, Data: m.Data}))
			}
		}
	}
	require.NoError(t, nc.Flush())
	// What is answered is answered in order, so after this nothing is on its way.
	_, err := nc.Request("$JS.API.STREAM.INFO.REGISTRY", nil, 10*time.Second)
	require.NoError(t, err)
	time.Sleep(300 * time.Millisecond) // nothing tells that nothing comes
	if after := state(t, operator); after != before {
		t.Errorf("%s changed\n%sto\n%s", role, before, after)
	}
	s, err := operator.Stream(t.Context(), "REGISTRY")
	require.NoError(t, err)
	if _, err := s.GetMsg(t.Context(), marker); err != nil {
		t.Error("the marker is gone:", err)
	}
}

// startThree starts a cluster of three nodes with the committed accounts, and returns one.
func startThree(t *testing.T) *cluster {
	t.Helper()
	var nodes []*cluster
	var addresses [3]string // of the routes, which a node wants to know before it starts
	for i := range addresses {
		var err error
		addresses[i], err = eventstest.Address()
		require.NoError(t, err)
	}
	for i, address := range addresses {
		opts, err := server.ProcessConfigFile("nats/nats.conf")
		require.NoError(t, err)
		opts.ServerName, opts.Host, opts.Port, opts.HTTPPort, opts.StoreDir, opts.NoSigs = fmt.Sprint("nats-", i), "127.0.0.1", -1, 0, t.TempDir(), true
		host, port, _ := strings.Cut(address, ":")
		opts.Cluster.Host = host
		opts.Cluster.Port, err = strconv.Atoi(port)
		require.NoError(t, err)
		opts.Routes = nil
		for _, other := range addresses {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", User: url.UserPassword(opts.Cluster.Username, opts.Cluster.Password), Host: other})
		}
		c := &cluster{log: &violations{}}
		if c.server, err = server.NewServer(opts); err != nil {
			t.Fatal(err)
		}
		c.server.SetLoggerV2(c.log, true, false, false)
		c.server.Start()
		t.Cleanup(func() { c.server.Shutdown(); c.server.WaitForShutdown() })
		nodes = append(nodes, c)
	}
	until(t, func() string { return "the cluster has a leader" }, func() bool {
		leaders := 0
		for _, c := range nodes {
			if c.server.JetStreamIsLeader() && len(c.server.JetStreamClusterPeers()) == len(nodes) {
				leaders++
			}
		}
		return leaders == 1
	})
	return nodes[0]
}
