package eventstest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
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
		require.NoError(t, events.Validate(eventstest.AnyEvent().Draw(t, "event")))
	})
}

// What is drawn has a value in every field, or a round trip would not notice a field that is not
// written.
func TestEveryFieldIsDrawn(t *testing.T) {
	for what, unset := range map[string][]string{
		"Event":    eventstest.Unset(examples(eventstest.AnyEvent())),
		"Entry":    eventstest.Unset(examples(eventstest.AnyEntry())),
		"Views":    eventstest.Unset(examples(eventstest.AnyViews())),
		"Donation": eventstest.Unset(examples(eventstest.AnyDonation())),
	} {
		if len(unset) > 0 {
			t.Errorf("Any%s never sets %v", what, unset)
		}
	}
}

func examples[T any](g *rapid.Generator[T]) []T {
	all := make([]T, 100)
	for i := range all {
		all[i] = g.Example(i)
	}
	return all
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
	require.NoError(t, err)
	if last != 20 || info.State.LastSeq != 20 {
		t.Errorf("last sequence %d, the stream says %d", last, info.State.LastSeq)
	}
}
