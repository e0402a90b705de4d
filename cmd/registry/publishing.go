package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"example.org/registry/events"
)

// batchLines is how many events go to the stream in one atomic batch: the broker's own limit.
const batchLines = 1000

// publishing is one run of publish. One goroutine uses it.
type publishing struct {
	send      sendFunc
	maxErrors int
	complaint io.Writer // takes one line for each bad line of the input
	bar       *bar

	ids       idSet
	pending   []line // checked, not sent yet; at most batchLines
	good, bad int
	done      events.Summary
	stopped   string // where --max-errors stopped the run
}

// sendFunc is PublishAll of one events.Run: it keeps the order and counts what got through,
// also when it returns an error.
type sendFunc func(context.Context, []events.Message) (events.Summary, error)

// errTooManyBad ends the reading of the input.
var errTooManyBad = errors.New("too many bad lines")

// lines publishes all inputs. An error says why not everything was sent.
func (r *publishing) lines(ctx context.Context, inputs []input) error {
	err := eachLine(ctx, inputs, func(l *line) error { return r.line(ctx, l) }, func() error { return r.flush(ctx) })
	if err == nil || errors.Is(err, errTooManyBad) {
		// The good lines before the one that stops the run are sent.
		if flushErr := r.flush(ctx); flushErr != nil {
			err = flushErr
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted: publish the same files again to send the rest")
	case err == nil && r.bad > 0, errors.Is(err, errTooManyBad):
		return r.badLines()
	}
	return err
}

// line takes one line of the input: into the next batch, or named as bad.
func (r *publishing) line(ctx context.Context, l *line) error {
	if l.err == nil && !r.ids.add(l.message.Event.ID) {
		l.err = errors.New("id: the input has had an event of this id before")
	}
	if l.err != nil {
		return r.refuse(l)
	}
	r.good++
	r.pending = append(r.pending, *l)
	if len(r.pending) == batchLines {
		return r.flush(ctx)
	}
	return nil
}

// refuse names a bad line.
func (r *publishing) refuse(l *line) error {
	r.bad++
	r.bar.add(l.size)
	if _, err := fmt.Fprintf(r.complaint, "%s: %s\n", l.place(), l.err); err != nil {
		return err
	}
	if r.bad > r.maxErrors {
		r.stopped = l.place()
		return errTooManyBad
	}
	return nil
}

// flush sends what is pending and waits until the stream has stored it. A message that the
// publisher still finds wrong (too long with its headers) is a bad line like any other.
func (r *publishing) flush(ctx context.Context) error {
	for len(r.pending) > 0 {
		at, err := r.sendPending(ctx)
		var wrong *events.Error
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &wrong):
			if err := r.dropPending(ctx, at, wrong); err != nil {
				return err
			}
		default:
			return fmt.Errorf("stopped at %s: %w; publish the same files again to send the rest; if it stops again, "+
				"the broker's log or /projection of the server says why", r.pending[at].place(), err)
		}
	}
	return nil
}

// sendPending sends one batch. What is certain to be stored is no longer pending then; an error is about the
// pending line at the index returned.
func (r *publishing) sendPending(ctx context.Context) (int, error) {
	messages := make([]events.Message, len(r.pending))
	for i := range r.pending {
		messages[i] = r.pending[i].message
	}
	sum, err := r.send(ctx, messages)
	r.done.Sent += sum.Sent
	r.done.Duplicates += sum.Duplicates
	r.done.LastSequence = max(r.done.LastSequence, sum.LastSequence)
	stored := len(r.pending)
	var failed *events.MessageError
	if errors.As(err, &failed) {
		stored = min(sum.Sent+sum.Duplicates, failed.Index) // beyond a lost one some may be stored: sent again they are duplicates
	} else if err != nil {
		stored = 0
	}
	for i := range r.pending[:stored] {
		r.bar.add(r.pending[i].size)
	}
	r.pending = append(r.pending[:0], r.pending[stored:]...)
	if failed == nil {
		return 0, err
	}
	return failed.Index - stored, err
}

// dropPending names the pending line at an index as bad. If it is one too many, the lines before it are sent
// and those after it are not.
func (r *publishing) dropPending(ctx context.Context, at int, why error) error {
	bad := r.pending[at]
	bad.err = why
	r.good--
	err := r.refuse(&bad)
	if err == nil {
		r.pending = slices.Delete(r.pending, at, at+1)
		return nil
	}
	r.pending = r.pending[:at]
	return errors.Join(err, r.flush(ctx))
}
