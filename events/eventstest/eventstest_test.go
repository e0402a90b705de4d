package eventstest_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the helpers make must be valid, or other rooms' tests test nothing.
func TestMadeEventsAreValid(t *testing.T) {
	for _, e := range eventstest.Events(2000, 7) {
		if err := events.Validate(e); err != nil {
			t.Fatal(e, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := events.Validate(eventstest.AnyEvent().Draw(t, "event")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEntriesDependOnTheSeedOnly(t *testing.T) {
	a, b, c := eventstest.Entries(100, 1), eventstest.Entries(100, 1), eventstest.Entries(100, 2)
	same := 0
	for i := range a {
		if a[i] != b[i] {
			t.Fatal("same seed, different entries at", i)
		}
		if a[i] == c[i] {
			same++
		}
	}
	if same == len(a) {
		t.Error("another seed, same entries")
	}
}

func TestPublishIntoTheStream(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	last := eventstest.Publish(t, js, eventstest.Events(20, 1)...)
	info, err := stream.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if last != 20 || info.State.LastSeq != 20 {
		t.Errorf("last sequence %d, the stream says %d", last, info.State.LastSeq)
	}
}
