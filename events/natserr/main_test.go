package natserr_test

import (
	"testing"

	"go.uber.org/goleak"

	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, eventstest.Leaks()...) }
