package eventstest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// LonelyNode connects to what answers about the event stream as a cluster's node does: with whom the stream has for a
// leader, nobody where that is empty, and no events. It answers nothing else. Several processes, and luck, are needed to see a
// node do that; cmd/registry/cluster has them.
func LonelyNode(t testing.TB, leader string) jetstream.JetStream {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the node does not start")
	}
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	answer, err := json.Marshal(jetstream.StreamInfo{Created: time.Now(), Cluster: &jetstream.ClusterInfo{Name: "nodes", Leader: leader}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Subscribe("$JS.API.STREAM.INFO.>", func(m *nats.Msg) { _ = m.Respond(answer) }); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
