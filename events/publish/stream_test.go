package publish_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// The broker keeps the options of events/CONTRACT.md#stream.
func TestStreamConfig(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	epoch := events.NewEpoch()
	s, err := js.CreateStream(t.Context(), publish.StreamConfig("REGISTRY", 1, 5, epoch))
	require.NoError(t, err)
	c := s.CachedInfo().Config
	for name, ok := range map[string]bool{
		"name":     c.Name == "REGISTRY" && len(c.Subjects) == 1 && c.Subjects[0] == "registry.>",
		"storage":  c.Storage == jetstream.FileStorage && c.Retention == jetstream.LimitsPolicy && c.Replicas == 1,
		"limits":   c.Discard == jetstream.DiscardNew && c.MaxAge == 0 && c.MaxMsgs == -1 && c.MaxBytes == -1,
		"subject":  c.MaxMsgsPerSubject == 5 && !c.DiscardNewPerSubject,
		"size":     c.MaxMsgSize == 256<<10,
		"window":   c.Duplicates == 100*time.Millisecond,
		"deny":     c.DenyDelete && !c.DenyPurge,
		"allow":    !c.AllowRollup && c.AllowDirect && c.AllowAtomicPublish,
		"metadata": c.Metadata["registry-epoch"] == epoch && c.Metadata["registry-demo"] == "",
	} {
		if !ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if all := publish.StreamConfig("X", 3, 0, epoch); all.MaxMsgsPerSubject != -1 || all.Replicas != 3 {
		t.Errorf("history 0: %+v", all)
	}
	if events.NewEpoch() == epoch {
		t.Error("the same epoch twice")
	}
}

func TestRejectedStreamConfig(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	s, err := js.CreateStream(t.Context(), publish.RejectedStreamConfig(1))
	require.NoError(t, err)
	for range 3 {
		eventstest.PublishRaw(t, js, "registry-rejected."+events.NewEpoch()+".1", nil)
		eventstest.PublishRaw(t, js, "registry-rejected.EPOCH.1", nil)
	}
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	c := info.Config
	if c.Name != "REGISTRY_REJECTED" || c.MaxMsgs != 10_000 || c.MaxBytes != 64<<20 || c.MaxAge != 30*24*time.Hour ||
		c.Discard != jetstream.DiscardOld || c.Storage != jetstream.FileStorage {
		t.Errorf("%+v", c)
	}
	if info.State.Msgs != 4 {
		t.Errorf("%d copies of 4 rejections", info.State.Msgs)
	}
}

// The history keeps the last messages of a subject (events/CONTRACT.md#stream).
func TestStreamKeepsTheLastOfASubject(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	s := eventstest.Stream(t, js)
	entry := eventstest.Entries(1, 1)[0]
	for version := range 8 {
		eventstest.Publish(t, js, eventstest.Listed(entry, version))
	}
	if n := stored(t, s); n != events.DefaultHistory {
		t.Errorf("%d messages of a subject are kept", n)
	}
}
