package snapshots

import (
	"context"
	"io"
	"time"
)

// workFor is how long a pacer lets work go on without a rest. What is longer than mostWork was not work but
// waiting for a processor, which needs no rest.
const (
	workFor  = 5 * time.Millisecond
	mostWork = 2 * workFor
)

// pacer keeps long work from taking a processor from the readers: after each stretch of work it rests
// Rest times as long. It belongs to one goroutine. The zero value never rests.
type pacer struct {
	rest  float64
	since time.Time
}

// turn is called between two pieces of work. The error is that of ctx.
func (p *pacer) turn(ctx context.Context) error {
	now := time.Now()
	worked := now.Sub(p.since)
	if p.since.IsZero() {
		p.since = now
		return ctx.Err()
	}
	if p.rest <= 0 || worked < workFor {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Duration(float64(min(worked, mostWork)) * p.rest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	p.since = time.Now()
	return ctx.Err()
}

// pacedWriter rests between writes, and ends with ctx.
type pacedWriter struct {
	ctx  context.Context
	pace *pacer
	to   io.Writer
}

func (w pacedWriter) Write(b []byte) (int, error) {
	if err := w.pace.turn(w.ctx); err != nil {
		return 0, err
	}
	return w.to.Write(b)
}
