package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"example.org/registry/events/pause"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		for _, d := range []time.Duration{time.Minute, 0, -time.Minute} {
			if !pause.For(t.Context(), d) {
				t.Errorf("%s: ended early", d)
			}
		}
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("waited for %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 2 { // it ends while it waits, and has ended before
			if pause.For(ctx, time.Hour) {
				t.Error("outlasted its context")
			}
		}
		if took := time.Since(begun); took != time.Minute+time.Second {
			t.Errorf("waited for %s", took)
		}
		for range 100 { // a time that is over is no excuse
			if pause.For(ctx, 0) {
				t.Fatal("true after the end of the context")
			}
		}
	})
}
