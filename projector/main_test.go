package projector

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) {
	if eventstest.RaceDetector {
		_ = flag.Set("rapid.checks", "20") // a flag on the command line comes later and wins
	}
	goleak.VerifyTestMain(m, eventstest.Leaks()...)
}
