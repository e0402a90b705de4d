package eventstest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Invalid events would make other packages' tests test nothing.
func TestMadeEventsAreValid(t *testing.T) {
	for _, e := range eventstest.Events(2000, 7) {
		require.NoError(t, events.Validate(e), "%v", e)
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
