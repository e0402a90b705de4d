package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
)

// harmful are reply subjects by which a role would do what its permissions do not let it do.
func harmful() []string {
	return []string{
		"$JS.API.STREAM.DELETE.REGISTRY", "$JS.API.STREAM.DELETE.OBJ_REGISTRY_SNAPSHOTS", "$JS.API.STREAM.DELETE.REGISTRY_REJECTED",
		"$JS.API.STREAM.PURGE.REGISTRY", "$JS.API.STREAM.PURGE.OBJ_REGISTRY_SNAPSHOTS", "$JS.API.STREAM.PURGE.REGISTRY_REJECTED",
		"registry.scammers.victim", "$O.REGISTRY_SNAPSHOTS.M.forged", "$O.REGISTRY_SNAPSHOTS.C.forged", "registry-rejected.forged.1",
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

// A role can do only what its account has: every user but emergency, with every subject it may publish to, every answer of
// the broker and every reply subject that would do harm.
func TestRepliesDoNoHarm(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"publisher", "replica", "snapshots", "operator"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			c := startNode(t)
			newMatrix(t, c, role).doesNoHarm(c.connect(t, role), "")
		})
	}
	t.Run("edge", func(t *testing.T) {
		t.Parallel()
		origin := startNodeFrom(t, func() (*server.Options, error) { return withLeafNodes(t), nil })
		newMatrix(t, origin, "edge").doesNoHarm(freeLeaf(t, origin), "$JS.registry.API.")
	})
	t.Run("publisher of an embedded broker", func(t *testing.T) {
		t.Parallel()
		b := eventstest.Broker(t, func(c *broker.Config) { c.ConfigFile = "nats/embedded.conf" })
		c := &cluster{url: b.ClientURL(), log: &violations{}}
		newMatrix(t, c, "publisher").doesNoHarm(c.connect(t, "publisher"), "")
	})
}

// freeLeaf is a client of a broker that connects as an edge, with the edge's key, and bounds nothing
// itself.
func freeLeaf(t *testing.T, origin *cluster) *nats.Conn {
	t.Helper()
	varz, err := origin.server.Varz(nil)
	require.NoError(t, err)
	seed, err := os.ReadFile(filepath.Join(secrets, "edge.nk"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "leaf.conf")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "leafnodes { remotes: [{ urls: \"nats-leaf://127.0.0.1:%d\", nkey: %q }] }\n", varz.LeafNode.Port, bytes.TrimSpace(seed)), 0o600))
	leaf := startNodeFrom(t, func() (*server.Options, error) { return server.ProcessConfigFile(file) }).server
	until(t, func() string { return "the leaf is connected" }, func() bool { return leaf.NumLeafNodes() == 1 })
	nc, err := nats.Connect(leaf.ClientURL(), nats.CustomInboxPrefix("_INBOX.edge"))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// matrix is what one role is tried on.
type matrix struct {
	t        *testing.T
	node     *cluster
	role     string
	operator jetstream.JetStream
	stored   uint64 // sequence of a message without a body
}

// newMatrix makes the streams, and stores what the role may store itself, so that it is no change.
func newMatrix(t *testing.T, node *cluster, role string) *matrix {
	t.Helper()
	operator := node.connect(t, "operator")
	createStreams(t, operator)
	m := &matrix{t: t, node: node, role: role, operator: jetStream(t, operator)}
	eventstest.Publish(t, m.operator, eventstest.Events(5, 1)...)
	m.stored = eventstest.PublishRaw(t, m.operator, "registry.scammers.empty", nil)
	if role == "edge" { // which connects as a leaf node alone
		return m
	}
	nc := node.connect(t, role)
	for _, subject := range m.subjects() {
		if strings.HasPrefix(subject, "registry.") || strings.HasPrefix(subject, "$O.") || strings.HasPrefix(subject, "registry-rejected.") {
			_, err := nc.Request(subject, []byte("own"), registrytest.Patience)
			require.NoError(t, err)
		}
	}
	return m
}

// subjects are those that the role may publish to, apart from its own requests to delete and purge.
func (m *matrix) subjects() (all []string) {
	if m.role == "edge" {
		return []string{"$JS.API.STREAM.INFO.REGISTRY", "$JS.API.STREAM.MSG.GET.REGISTRY", "$JS.API.CONSUMER.CREATE.REGISTRY.x"}
	}
	for subject, may := range powers() {
		if named(may, m.role) && !strings.Contains(subject, ".PURGE.") && !strings.Contains(subject, "STEPDOWN") && !strings.Contains(subject, "PEER.REMOVE") {
			all = append(all, subject)
		}
	}
	slices.Sort(all)
	return all
}

// mayItself reports whether the role may publish to a subject without a reply.
func (m *matrix) mayItself(subject string) bool {
	for of, like := range map[string]string{"registry.scammers.victim": "registry.scammers.x", "$O.REGISTRY_SNAPSHOTS.M.forged": "$O.REGISTRY_SNAPSHOTS.M.x",
		"$O.REGISTRY_SNAPSHOTS.C.forged": "$O.REGISTRY_SNAPSHOTS.C.x", "registry-rejected.forged.1": "registry-rejected.e.1"} {
		if subject == of {
			subject = like
		}
	}
	return named(powers()[subject], m.role)
}

// attack sends every message with every reply subject, from a connection of the role, and waits for
// the answer to a marker behind each subject: what is answered is answered in order. api is the
// prefix of JetStream's API, if it is another one.
func (m *matrix) attack(nc *nats.Conn, api string) {
	m.t.Helper()
	for _, subject := range m.subjects() {
		if strings.Contains(subject, ".MSG.NEXT.") { // the request to delete it has been tried
			_, err := jetStream(m.t, nc).CreateConsumer(m.t.Context(), "REGISTRY", jetstream.ConsumerConfig{Name: "x", AckPolicy: jetstream.AckNonePolicy})
			require.NoError(m.t, err)
		}
		create := strings.HasSuffix(subject, "CONSUMER.CREATE.REGISTRY.x")
		if api != "" {
			subject = strings.Replace(subject, "$JS.API.", api, 1)
		}
		for i, reply := range harmful() {
			if m.mayItself(reply) {
				continue
			}
			for _, body := range bodies(m.stored) {
				require.NoError(m.t, nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Header: body.Header, Data: body.Data}))
			}
			if create { // a consumer that delivers to the subject
				name := fmt.Sprint("push", i)
				require.NoError(m.t, nc.PublishMsg(&nats.Msg{Subject: strings.TrimSuffix(subject, "x") + name, Reply: reply, Data: fmt.Appendf(nil,
					`{"stream_name":"REGISTRY","action":"create","config":{"name":%q,"deliver_subject":%q,"ack_policy":"none","deliver_policy":"all","flow_control":true,"idle_heartbeat":1000000000}}`, name, reply)}))
			}
		}
		var err error
		until(m.t, func() string { return fmt.Sprintf("an answer to %s: %v", subject, err) }, func() bool { // a stream that is being deleted may lose a request
			_, err = nc.Request(subject, []byte(`{"batch":1,"no_wait":true}`), 5*time.Second)
			return err == nil || errors.Is(err, nats.ErrNoResponders)
		})
	}
}

// doesNoHarm attacks and compares what there is to harm before and after. Requests behind the attack, to the streams'
// leader and to each stream, are answered when the broker has dealt with all that was sent to reply subjects.
func (m *matrix) doesNoHarm(nc *nats.Conn, api string) {
	m.t.Helper()
	before := m.state()
	m.attack(nc, api)
	if m.node.server != nil {
		js := jetStream(m.t, m.node.connect(m.t, "emergency"))
		_, err := js.CreateStream(m.t.Context(), jetstream.StreamConfig{Name: "MARKER", Subjects: []string{"MARKER"}})
		require.NoError(m.t, err)
		require.NoError(m.t, js.DeleteStream(m.t.Context(), "MARKER"))
		for _, name := range streams() {
			if s, err := js.Stream(m.t.Context(), name); err == nil {
				require.NoError(m.t, s.Purge(m.t.Context(), jetstream.WithPurgeSubject(strings.TrimSuffix(s.CachedInfo().Config.Subjects[0], ">")+"none")))
			}
		}
	}
	require.Equal(m.t, before, m.state())
}

// state is what there is to harm.
func (m *matrix) state() string {
	m.t.Helper()
	var b strings.Builder
	for _, name := range streams() {
		s, err := m.operator.Stream(m.t.Context(), name)
		if err != nil {
			fmt.Fprintln(&b, name, err)
			continue
		}
		info, err := s.Info(m.t.Context(), jetstream.WithSubjectFilter(">"))
		require.NoError(m.t, err)
		fmt.Fprintln(&b, name, "holds", slices.Sorted(maps.Keys(info.State.Subjects)))
	}
	return b.String()
}

// withLeafNodes is nats.conf with the comment about leaf nodes taken away, apart from the TLS.
func withLeafNodes(t *testing.T) *server.Options {
	t.Helper()
	text, err := os.ReadFile("nats/nats.conf")
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(text), "# leafnodes {")
	lines, after, found := strings.Cut(rest, "# }")
	if !found {
		t.Fatal("nats.conf has no comment about leaf nodes")
	}
	listen, _, _ := strings.Cut(lines, "tls {")
	dir := t.TempDir()
	config := before + "leafnodes {" + strings.ReplaceAll(strings.Replace(listen, "0.0.0.0:7422", "127.0.0.1:-1", 1), "#", "") + "\n}" + after
	file := filepath.Join(dir, "nats.conf")
	accounts, err := os.ReadFile("nats/accounts.conf")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "accounts.conf"), accounts, 0o600))
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	opts, err := server.ProcessConfigFile(file)
	require.NoError(t, err)
	opts.LeafNode.NoAdvertise = true // else the edge finds another way than the one that is cut
	return opts
}
