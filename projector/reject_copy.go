package projector

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/failpoint"
)

const (
	copiesAtOnce = 16
	copyBatch    = 128
)

// prepare creates the stream of rejected events when it is missing.
func (r *rejecter) prepare(ctx context.Context) error {
	if r.exists {
		return nil
	}
	if !r.cfg.Conn.IsConnected() {
		return errAway
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := r.js.Stream(ctx, events.RejectedStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = r.js.CreateStream(ctx, events.RejectedStreamConfig(r.cfg.Replicas))
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // a replica was faster
		return fmt.Errorf("stream %s: %w", events.RejectedStream, events.Refusal(r.cfg.Conn, err, jetstream.DefaultAPIPrefix+"STREAM."))
	}
	r.exists = true
	return nil
}

// copyNext copies the first that wait. After an error all of them are copied again: a copy
// replaces the one of the same event.
func (r *rejecter) copyNext(ctx context.Context) ([]rejection, error) {
	r.mu.Lock()
	batch := r.waiting[:min(len(r.waiting), copyBatch)]
	r.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(copiesAtOnce)
	for _, x := range batch {
		group.Go(func() error { return r.copyOne(ctx, x) })
	}
	if err := group.Wait(); err != nil {
		r.exists = false // it may have been deleted
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = r.waiting[len(batch):]
	for _, x := range batch {
		r.bytes -= len(x.data)
	}
	if len(batch) > 0 {
		r.announce()
	}
	return batch, nil
}

func (r *rejecter) copyOne(ctx context.Context, x rejection) error {
	if !r.cfg.Conn.IsConnected() {
		return errAway
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := failpoint.Hit("projector/before-copy"); err != nil {
		return err
	}
	if _, err := r.js.PublishMsg(ctx, r.message(x), jetstream.WithExpectStream(events.RejectedStream)); err != nil {
		return events.Refusal(r.cfg.Conn, err, events.RejectedPrefix)
	}
	return failpoint.Hit("projector/after-copy")
}

// message is the copy of x. It has no message id: the stream keeps one message a subject, so
// the same copy again adds nothing, also after the duplicate window.
func (r *rejecter) message(x rejection) *nats.Msg {
	seq := strconv.FormatUint(x.seq, 10)
	m := &nats.Msg{
		Subject: events.RejectedPrefix + token(r.epoch) + "." + seq,
		Header: nats.Header{
			events.HeaderReason:   {x.reason},
			events.HeaderSequence: {seq},
			events.HeaderSubject:  {x.subject},
			events.HeaderTime:     {x.time.UTC().Format(time.RFC3339Nano)},
		},
		Data: x.data,
	}
	if len(x.data) > events.MaxRejected {
		m.Data = x.data[:events.MaxRejected]
		m.Header.Set(events.HeaderTruncated, "1")
	}
	return m
}

// token makes any epoch one token of a subject. Those that this program makes stay as they are.
func token(epoch string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z', r == '-', r == '_':
			return r
		}
		return '_'
	}, epoch)
}
