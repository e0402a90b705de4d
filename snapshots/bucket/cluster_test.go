package bucket

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// In a cluster of three, a replica may be a moment behind the acknowledgment. A snapshot that is put
// stays whole, whichever nodes the clients are connected to, and whichever removes orphans next.
func TestCluster(t *testing.T) {
	t.Parallel()
	var buckets []*Bucket
	nodes, clients := cluster(t)
	for _, js := range clients {
		b := New(js, Config{Replicas: 3})
		b.orphanAfter = time.Nanosecond
		buckets = append(buckets, b)
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	err := buckets[0].Create(t.Context())
	for tries := 0; err != nil && tries < 1000; tries++ {
		<-again.C
		err = buckets[0].Create(t.Context())
	}
	require.NoError(t, err)
	for _, node := range nodes {
		for tries := 0; !answersDirectGets(t, node); tries++ {
			if <-again.C; tries == 1000 {
				t.Fatalf("%s does not answer direct gets", node.Name())
			}
		}
	}
	content := bytes.Repeat([]byte("x"), 2000)
	for n := range uint64(60) {
		at, next := buckets[n%3], buckets[(n+1)%3]
		m := snapshots.Manifest{Digest: strings.Repeat("ab", 16), Time: time.Unix(1e9, 0), Checkpoint: readmodel.Checkpoint{
			Sequence: n + 1, StreamIdentity: readmodel.StreamIdentity{Stream: events.DefaultStream, StreamEpoch: "E"}}}
		o, err := at.Put(t.Context(), m, bytes.NewReader(content))
		if err != nil {
			t.Fatalf("put %d: %v", n, err)
		}
		if removed, err := next.RemoveOrphans(t.Context()); removed > 0 || err != nil {
			t.Fatalf("put %d: %d orphans removed, %v", n, removed, err)
		}
		r, err := next.Open(t.Context(), o)
		require.NoError(t, err)
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("put %d: %d bytes read, %v", n, len(got), err)
		}
	}
	if found := names(t, buckets[1]); len(found) != 60 {
		t.Errorf("%d of 60 are listed", len(found))
	}
}

// answersDirectGets reports whether a node answers direct gets of the bucket. A replica does so about
// a second after the bucket is made.
func answersDirectGets(t *testing.T, node *server.Server) bool {
	t.Helper()
	found, err := node.Subsz(&server.SubszOptions{Subscriptions: true, Test: directGet})
	require.NoError(t, err)
	return slices.ContainsFunc(found.Subs, func(d server.SubDetail) bool { return d.Subject == directGet })
}

// cluster starts three brokers and connects to each.
func cluster(t *testing.T) (nodes []*server.Server, clients []jetstream.JetStream) {
	t.Helper()
	var routes []*url.URL
	for range 3 {
		addr, err := eventstest.Address()
		require.NoError(t, err)
		routes = append(routes, &url.URL{Scheme: "nats", Host: addr})
	}
	for i, route := range routes {
		var port int
		if _, err := fmt.Sscan(route.Port(), &port); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, eventstest.Server(t, &server.Options{ServerName: fmt.Sprint("n", i), JetStream: true, SyncAlways: true,
			StoreDir: t.TempDir(), Routes: routes, Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port}}))
	}
	for _, s := range nodes {
		if !s.ReadyForConnections(30 * time.Second) {
			t.Fatal("a node does not start")
		}
		js := eventstest.Dial(t, s.ClientURL())
		clients = append(clients, js)
	}
	return nodes, clients
}
