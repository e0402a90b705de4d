package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
)

const (
	maxLine    = 1 << 20                // bytes of one line (API contract, program)
	chunkLines = 256                    // lines decoded by one worker at a time
	chunkBytes = 256 << 10              // or this many bytes of them
	inputPause = 100 * time.Millisecond // without a line: what has come is sent without waiting for more
	chunksOut  = 16                     // chunks read ahead: bounds what waits in memory to 16 × (256 KiB + a line)
)

// line is one checked line of the input. Blank lines never become one.
type line struct {
	file    string
	number  int    // from 1, within its file
	size    int    // bytes in the file, line break included
	payload []byte // the event as written, without surrounding white space
	message events.Message
	err     error // why it must not be sent
}

// place is where to find the line, as compilers write it.
func (l *line) place() string { return fmt.Sprintf("%s:%d", l.file, l.number) }

// chunk is a run of lines, decoded by one worker. They may be read once done is closed.
type chunk struct {
	lines []line
	done  chan struct{}
}

func newChunk() *chunk { return &chunk{done: make(chan struct{})} }

// decode checks every line of the chunk.
func (c *chunk) decode() {
	for i := range c.lines {
		if l := &c.lines[i]; l.err == nil {
			l.message, l.err = events.ParseMessage(l.payload)
		}
	}
	close(c.done)
}

// eachLine reads the inputs in order, decodes their lines on every core, and calls fn with one
// line after another, in input order, from one goroutine; when the input pauses, as a pipe
// does, it calls paused from there. It ends with the first error of either, a reading error, or
// ctx; no goroutine is left behind.
func eachLine(ctx context.Context, inputs []input, fn func(*line) error, paused func() error) error {
	group, ctx := errgroup.WithContext(ctx)
	ordered := make(chan *chunk, chunksOut)
	work := make(chan *chunk, chunksOut)
	group.Go(func() error {
		defer close(ordered)
		defer close(work)
		return readInputs(ctx, inputs, func(c *chunk) error { return handOut(ctx, c, ordered, work) })
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for c := range work {
				c.decode()
			}
			return nil
		})
	}
	group.Go(func() error { return consume(ctx, ordered, fn, paused) })
	return group.Wait()
}

// handOut queues a chunk for decoding and, in reading order, for the consumer.
func handOut(ctx context.Context, c *chunk, queues ...chan<- *chunk) error {
	for _, q := range queues {
		select {
		case q <- c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func consume(ctx context.Context, ordered <-chan *chunk, fn func(*line) error, paused func() error) error {
	for {
		c, err := nextChunk(ctx, ordered, paused)
		if c == nil {
			return err
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		for i := range c.lines {
			if err := fn(&c.lines[i]); err != nil {
				return err
			}
		}
	}
}

// nextChunk waits for a chunk, and calls paused once if that takes long. It returns nil at the
// end, with ctx's error if that is why.
func nextChunk(ctx context.Context, ordered <-chan *chunk, paused func() error) (*chunk, error) {
	pause := time.NewTimer(inputPause)
	defer pause.Stop()
	for {
		select {
		case c, more := <-ordered:
			if !more {
				return nil, ctx.Err()
			}
			return c, nil
		case <-pause.C:
			if err := paused(); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
