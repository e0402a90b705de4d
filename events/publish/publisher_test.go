package publish_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// TestMain draws fewer sequences where not everything is to be tried: each one takes the broker
// about 50 ms.
func TestMain(m *testing.M) {
	if !eventstest.FullRun() {
		_ = flag.Set("rapid.checks", "25") // a flag on the command line comes later and wins
	}
	goleak.VerifyTestMain(m, eventstest.Leaks()...)
}

func newPublisher(js jetstream.JetStream) *publish.Publisher {
	return publish.New(js, publish.Config{Stream: events.DefaultStream})
}

func TestPublishOne(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	p, e := newPublisher(js), eventstest.Listed(eventstest.Entries(1, 1)[0], 5)

	first, err := p.Publish(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, publish.Ack{Sequence: 1}, first)
	again, err := p.Publish(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, publish.Ack{Sequence: 1, Known: true}, again)
	msg, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "application/cloudevents+json", msg.Header.Get("Content-Type"))
	require.Empty(t, msg.Header.Get(jetstream.MsgIDHeader))
	back, err := events.DecodeMessage(msg.Subject, msg.Data)
	require.NoError(t, err)
	require.Equal(t, e, back)
}

// An event that changes nothing is not reported as success.
func TestPublishStale(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	p, entry := newPublisher(js), eventstest.Entries(1, 1)[0]
	_, err := p.Publish(t.Context(), eventstest.Listed(entry, 8))
	require.NoError(t, err)
	_, err = p.Publish(t.Context(), eventstest.Listed(entry, 7))
	late, ok := errors.AsType[*publish.StaleError](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, 8, late.Known)
	require.EqualValues(t, 1, stored(t, stream))
}

// A tombstone erases the subject's earlier messages and stays (events/CONTRACT.md#publishing).
func TestPublishTombstone(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	p, entry := newPublisher(js), eventstest.Entries(1, 1)[0]
	for _, e := range []events.Event{eventstest.Listed(entry, 1), delisted(entry)} {
		_, err := p.Publish(t.Context(), e)
		require.NoError(t, err)
	}
	msg, err := stream.GetMsg(t.Context(), 2)
	if err != nil || msg.Header.Get(jetstream.MsgRollup) != "" || stored(t, stream) != 2 {
		t.Errorf("%+v, %v; %d messages", msg, err, stored(t, stream))
	}
	// The stream refuses what would erase it.
	all := &nats.Msg{Subject: entry.Subject().String(), Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupAll}}}
	if _, err := js.PublishMsg(t.Context(), all); err == nil || stored(t, stream) != 2 {
		t.Errorf("a roll-up of everything: %v, %d messages are left", err, stored(t, stream))
	}
}

func delisted(e events.Entry) events.Event {
	return events.Event{
		ID: string(e.List) + "." + e.EntryID + ".delisted", Source: "urn:registry:test", Type: events.TypeDelisted,
		Data: events.Delisting{Revision: 2, List: e.List, EntryID: e.EntryID},
	}
}

func TestPublishRefusesWhatBreaksTheContract(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	p, bad := newPublisher(js), eventstest.Entries(1, 1)[0]
	bad.Name = ""
	var reason *events.Error
	if _, err := p.Publish(t.Context(), eventstest.Listed(bad, 1)); !errors.As(err, &reason) || reason.Field != "data.name" {
		t.Error(err)
	}
	if n := stored(t, stream); n != 0 {
		t.Error(n, "messages were sent")
	}
}

func TestPublishIntoAnotherStreamIsRefused(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js, func(c *jetstream.StreamConfig) { c.Name = "OTHER" })
	p, evs := newPublisher(js), eventstest.Events(3, 1)
	if _, err := p.Publish(t.Context(), evs[0]); err == nil {
		t.Error("published into a stream of another name")
	}
	sum, err := p.PublishAll(t.Context(), messages(evs))
	if at, ok := errors.AsType[*publish.MessageError](err); !ok || at.Index != 0 || sum.Done() != 0 {
		t.Error(sum, err)
	}
	if n := stored(t, stream); n != 0 {
		t.Error(n, "messages were stored")
	}
}

func TestPublishWithoutStreamEnds(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p := newPublisher(js)
	if _, err := p.Publish(ctx, eventstest.Events(1, 1)[0]); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Error(err)
	}
	if _, err := p.PublishAll(ctx, messages(eventstest.Events(2, 1))); err == nil || ctx.Err() != nil {
		t.Error(err, ctx.Err())
	}
}

func messages(evs []events.Event) []publish.Message {
	out := make([]publish.Message, len(evs))
	for i, e := range evs {
		out[i].Event = e
	}
	return out
}

func stored(t *testing.T, s jetstream.Stream) uint64 {
	t.Helper()
	info, err := s.Info(context.Background())
	require.NoError(t, err)
	return info.State.Msgs
}
