package stream_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/stream"
)

// The broker makes the stream that CONTRACT.md#stream describes.
func TestConfig(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	id := stream.Identity{Epoch: "E2", Follows: []string{"E1", "E0"}, Demo: true}
	made, err := js.CreateStream(t.Context(), stream.Config("REGISTRY", 1, 0, id))
	require.NoError(t, err)
	id.Stream = "REGISTRY"
	require.Equal(t, id, stream.IdentityOf(made.CachedInfo()))
	c := made.CachedInfo().Config
	require.EqualValues(t, -1, c.MaxMsgsPerSubject)
	require.EqualValues(t, 100e6, c.Duplicates)
	require.EqualValues(t, events.MaxPayload, c.MaxMsgSize)
	require.Equal(t, []any{jetstream.DiscardNew, jetstream.LimitsPolicy, jetstream.FileStorage}, []any{c.Discard, c.Retention, c.Storage})
	require.True(t, c.DenyDelete && c.AllowAtomicPublish && !c.AllowRollup && !c.DenyPurge)
	require.Zero(t, c.MaxAge)
	_, err = js.CreateStream(t.Context(), stream.RejectedConfig(1))
	require.NoError(t, err)

	s := stream.Stream{JS: js, Name: "REGISTRY"}
	_, err = s.Message(t.Context(), 1)
	require.ErrorIs(t, err, jetstream.ErrMsgNotFound)
	_, err = stream.Stream{JS: js, Name: "NONE"}.Info(t.Context())
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}

func TestIdentity(t *testing.T) {
	id := func(epochs ...string) stream.Identity { return stream.Identity{Epoch: epochs[0], Follows: epochs[1:]} }
	for _, c := range []struct {
		a, b    stream.Identity
		related bool
	}{
		{id("a"), id("a"), true},
		{id("a"), id("b"), false},
		{id("b", "a"), id("a"), true},
		{id("b", "a"), id("c", "a"), true},
		{id("b", "a"), id("c", "d"), false},
		{stream.Identity{}, stream.Identity{}, false},
	} {
		require.Equal(t, c.related, c.a.Related(c.b), "%v, %v", c.a, c.b)
		require.Equal(t, c.related, c.b.Related(c.a), "%v, %v", c.b, c.a)
	}

	require.Equal(t, []string{"a", "b", "c"}, stream.Follow("x", id("a", "b"), id("x", "b", "c"), stream.Identity{}))
	many := slices.Repeat([]string{"e"}, 200)
	for i := range many {
		many[i] += strings.Repeat("e", i)
	}
	require.Equal(t, many[:stream.MaxFollows], stream.Follow("x", id(many...)))
}

// An answer about the stream from a node that knows no leader is refused.
func TestLeaderless(t *testing.T) {
	_, err := stream.Stream{JS: eventstest.LonelyNode(t, ""), Name: "REGISTRY"}.Info(t.Context())
	require.ErrorIs(t, err, stream.ErrLeaderless)
}
