package serve

import (
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.org/registry/events/eventstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, append(eventstest.Leaks(),
		goleak.IgnoreAnyFunction("go.etcd.io/bbolt.(*DB).Close"))...) // of a damaged file, which snapshots leaves after 2 s
}

// patience bounds every wait; nothing is expected to take this long.
const patience = 60 * time.Second

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// noLosses is a log that has lost no line.
func noLosses() (unread, limited uint64) { return 0, 0 }
