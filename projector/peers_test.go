package projector

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// A stream lacks the copies that its leader does not know, knows to be away, or knows to be behind.
func TestPeersMissing(t *testing.T) {
	good, behind, away := &jetstream.PeerInfo{Current: true}, &jetstream.PeerInfo{}, &jetstream.PeerInfo{Current: true, Offline: true}
	for _, c := range []struct {
		replicas int
		cluster  *jetstream.ClusterInfo
		want     int
	}{
		{1, nil, 0},
		{1, &jetstream.ClusterInfo{}, 0},
		{3, &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{good, good}}, 0},
		{3, &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{good}}, 1}, // the third was removed
		{3, &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{good, away}}, 1},
		{3, &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{behind, away}}, 2},
		{3, &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{good, good, behind}}, 0}, // one is being moved
	} {
		info := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Replicas: c.replicas}, Cluster: c.cluster}
		if got := peersMissing(info); got != c.want {
			t.Errorf("%+v: %d, want %d", c.cluster, got, c.want)
		}
	}
}
