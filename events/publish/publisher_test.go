package publish_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

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
	_, err := p.Publish(t.Context(), eventstest.Listed(bad, 1))
	require.ErrorContains(t, err, "data.name: ")
	require.Zero(t, stored(t, stream))
}

func TestPublishIntoAnotherStreamIsRefused(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js, func(c *jetstream.StreamConfig) { c.Name = "OTHER" })
	p, evs := newPublisher(js), eventstest.Events(3, 1)
	_, err := p.Publish(t.Context(), evs[0])
	require.Error(t, err)
	sum, err := p.PublishAll(t.Context(), messages(evs))
	require.ErrorContains(t, err, "message 0: ")
	require.Zero(t, sum.Done())
	require.Zero(t, stored(t, stream))
}

func TestPublishWithoutStreamEnds(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := newPublisher(js)
	_, err := p.Publish(ctx, eventstest.Events(1, 1)[0])
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
	_, err = p.PublishAll(ctx, messages(eventstest.Events(2, 1)))
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "PublishAll waits for ever")
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
