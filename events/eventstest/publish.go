package eventstest

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
)

// Publish publishes events one by one, as a backend would, and returns the last sequence.
func Publish(t testing.TB, js jetstream.JetStream, evs ...events.Event) uint64 {
	t.Helper()
	var last uint64
	for _, e := range evs {
		payload, err := events.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		msg := &nats.Msg{Subject: e.Data.Subject(), Data: payload, Header: nats.Header{
			events.HeaderContent:  {events.ContentType},
			jetstream.MsgIDHeader: {e.ID},
		}}
		if e.Type.Tombstone() {
			msg.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
		}
		last = publish(t, js, msg)
	}
	return last
}

// PublishRaw publishes any payload on any subject, for what the contract rejects, and
// returns its sequence.
func PublishRaw(t testing.TB, js jetstream.JetStream, subject string, payload []byte) uint64 {
	t.Helper()
	return publish(t, js, &nats.Msg{Subject: subject, Data: payload})
}

func publish(t testing.TB, js jetstream.JetStream, msg *nats.Msg) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ack, err := js.PublishMsg(ctx, msg)
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}
