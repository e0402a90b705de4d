package readmodel

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"
)

// Indexer keeps a text index of a model. Nobody waits for it: searches are exact without it, and
// faster as far as it has come.
type Indexer struct {
	// Dir is where the index's files are made. What is there is removed.
	Dir string
	// Logger gets one line when the index is first complete and one for each failure. Nil: none.
	Logger *slog.Logger
	// Slack is how many changed entries of one part of a list are looked at rather than indexed anew.
	// Zero: 32.
	Slack int
	// Pause is how long to wait after a view before the next one is followed. Zero: 20 ms.
	Pause time.Duration

	trouble atomic.Pointer[string]
	writing atomic.Pointer[time.Time] // since when, by the monotonic clock too; nil while it is not
}

const (
	// afterFailure is how long to wait before the index is written to again.
	afterFailure = 5 * time.Second
	// tooLong is when a block that is being written is said to hang.
	tooLong = 10 * time.Second
)

// Trouble is why the index is not what it should be, in a sentence; "" when nothing is wrong. Any
// goroutine may call it.
func (x *Indexer) Trouble() string {
	if since := x.writing.Load(); since != nil {
		if d := time.Since(*since); d > tooLong {
			return fmt.Sprintf("The text index has been writing for %s; searches look at every entry it lacks.", d.Round(time.Second))
		}
	}
	if t := x.trouble.Load(); t != nil {
		return *t
	}
	return ""
}

// Run keeps an index of m until ctx ends. What fails is tried again after a while; what has been
// indexed stays in use. One Indexer runs for a model at a time.
func (x *Indexer) Run(ctx context.Context, m *Model) {
	f := &feed{indexer: x, model: m}
	start, told := time.Now(), false
	for ctx.Err() == nil {
		v := m.View()
		more, err := f.step(ctx, v)
		if err != nil && ctx.Err() == nil {
			x.failed(err)
		}
		if !told && f.next.complete > 0 {
			told = true
			x.logger().Info("text index complete", "checkpoint", v.sequence, "took", time.Since(start).Round(time.Millisecond).String())
		}
		if !more {
			f.idle(ctx, v)
		}
	}
}

func (x *Indexer) failed(err error) {
	sentence := "The text index cannot be written, so searches look at the entries it lacks: " + err.Error() + "."
	x.trouble.Store(&sentence)
	x.logger().Error("text index cannot be written; searches look at the entries it lacks", "error", err, "retry", afterFailure.String())
}

func (x *Indexer) pause() time.Duration {
	if x.Pause > 0 {
		return x.Pause
	}
	return 20 * time.Millisecond
}

func (x *Indexer) slack() int {
	if x.Slack > 0 {
		return x.Slack
	}
	return 32
}

func (x *Indexer) logger() *slog.Logger {
	if x.Logger != nil {
		return x.Logger
	}
	return slog.New(slog.DiscardHandler)
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// rest leaves readers their processors: after busy the caller waits so long that it takes a quarter
// of them at most.
func rest(ctx context.Context, busy time.Duration) {
	if n := runtime.GOMAXPROCS(0); n < 4 {
		wait(ctx, busy*time.Duration(4-n)/time.Duration(n))
	}
}

// IndexSequence is the last sequence up to which the text index covers the model, but for a few
// entries that it names; 0 while it has never come so far. Any goroutine may call it.
func (m *Model) IndexSequence() uint64 {
	if x := m.accelerator.index.Load(); x != nil {
		return x.complete
	}
	return 0
}
