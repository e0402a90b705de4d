//go:build !race

package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// connect reaches the cluster through whichever node is up, for ever.
func (c *nodes) connect() jetstream.JetStream {
	c.t.Helper()
	nc, err := nats.Connect(strings.Join(c.urls(), ","), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.RetryOnFailedConnect(true), nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(time.Second),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // what matters comes back as an error
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(3*time.Second))
	if err != nil {
		c.t.Fatal(err)
	}
	return js
}

// formed waits until the three nodes have found each other: a stream with three replicas can be made.
func (c *nodes) formed(js jetstream.JetStream) {
	c.t.Helper()
	until(c.t, "the nodes make a stream of three replicas", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "FORMED", Subjects: []string{"formed"}, Replicas: 3})
		return err == nil && js.DeleteStream(ctx, "FORMED") == nil
	})
}

// info is nil when nobody answers.
func info(js jetstream.JetStream, stream string) *jetstream.StreamInfo {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return nil
	}
	return s.CachedInfo()
}

// leader is the number of the node that leads the event stream, which it waits for.
func (c *nodes) leader(js jetstream.JetStream) int {
	c.t.Helper()
	leader := -1
	until(c.t, "the stream has a leader", func() bool {
		i := info(js, events.DefaultStream)
		if i == nil || i.Cluster == nil {
			return false
		}
		_, err := fmt.Sscanf(i.Cluster.Leader, "node%d", &leader)
		return err == nil
	})
	return leader
}

// whole waits until every replica of the stream is up to date, without which the next fault would be two.
func (c *nodes) whole(js jetstream.JetStream) time.Duration {
	c.t.Helper()
	return until(c.t, "the stream's replicas are current", func() bool {
		for _, name := range []string{events.DefaultStream, "OBJ_REGISTRY_SNAPSHOTS"} {
			i := info(js, name)
			if i == nil || i.Cluster == nil || len(i.Cluster.Replicas) != 2 {
				return false
			}
			for _, r := range i.Cluster.Replicas {
				if !r.Current || r.Offline || r.Lag > 100 {
					return false
				}
			}
		}
		return true
	})
}

// stepDown makes the stream's leader give up.
func stepDown(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	until(t, "the leader steps down", func() bool {
		m, err := js.Conn().Request("$JS.API.STREAM.LEADER.STEPDOWN."+events.DefaultStream, nil, 3*time.Second)
		return err == nil && strings.Contains(string(m.Data), `"success":true`)
	})
}
