package bucket

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events/natserr"
)

// lockSubject holds the lock's message. The lock is held while that message names a holder and is
// younger than its lease.
const lockSubject = chunkPrefix + "lock"

// ErrLocked means that another process holds the lock.
var ErrLocked = errors.New("another server is making a snapshot")

// Lock is the lock on the bucket. A goroutine renews it until Release, which any goroutine may
// call, once.
type Lock struct {
	b        *Bucket
	id       string // distinguishes our messages from others
	sequence uint64 // of our last message; owned by renew, then by Release
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when renew has returned
}

// lockMessage is the lock's message.
type lockMessage struct {
	Holder string        `json:"holder"` // empty if the lock is free
	Lease  time.Duration `json:"lease"`  // nanoseconds
	ID     string        `json:"id"`     // of the Lock
}

// holds reports whether a message of this age means that the lock is held. The age is negative if
// the broker's clock was set back. A live holder then renews the lock by the new clock.
func (m lockMessage) holds(age time.Duration) bool { return m.Holder != "" && age.Abs() < m.Lease }

// Lock takes the lock without waiting: if another process holds it, the error matches ErrLocked.
// The returned context ends with ctx, or when the lock is lost. The caller ends the lock with
// Release.
func (b *Bucket) Lock(ctx context.Context) (context.Context, *Lock, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return nil, nil, err
	}
	before, err := s.freeLock(ctx)
	if err != nil {
		return nil, nil, err
	}
	l := &Lock{b: b, id: rand.Text(), sequence: before, done: make(chan struct{})}
	if err := l.write(ctx, l.message()); err != nil {
		return nil, nil, err
	}
	ctx, l.cancel = context.WithCancelCause(ctx)
	go l.renew(ctx)
	return ctx, l, nil
}

// Release releases the lock. If that fails, the lock ends with its lease.
func (l *Lock) Release() {
	l.cancel(nil)
	<-l.done
	_ = l.write(context.Background(), lockMessage{ID: l.id})
}

// freeLock returns the sequence of the lock's last message, or 0 if there is none. It returns an
// error if the lock is held.
func (s stream) freeLock(ctx context.Context) (uint64, error) {
	m, err := s.last(ctx, lockSubject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, now, err := s.subjects(ctx, lockSubject)
	if err != nil {
		return 0, err
	}
	var held lockMessage
	age := now.Sub(m.Time)
	if json.Unmarshal(m.Data, &held) == nil && held.holds(age) {
		return 0, fmt.Errorf("%w: %.100q began %s ago", ErrLocked, held.Holder, age.Round(time.Second))
	}
	return m.Sequence, nil
}

func (l *Lock) message() lockMessage { return lockMessage{l.b.cfg.Holder, l.b.lease, l.id} }

// write replaces the lock's message, if the current one is still ours. If the acknowledgment of our
// last message was lost, it first looks up its sequence.
func (l *Lock) write(ctx context.Context, message lockMessage) error {
	err := l.writeAfter(ctx, message)
	if !errors.Is(err, ErrLocked) {
		return err
	}
	s := stream{b: l.b}
	last, readErr := s.last(ctx, lockSubject)
	var found lockMessage
	if readErr != nil || json.Unmarshal(last.Data, &found) != nil || found.ID != l.id {
		return err
	}
	l.sequence = last.Sequence
	return l.writeAfter(ctx, message)
}

// writeAfter replaces the lock's message, if the current one has the sequence l.sequence.
func (l *Lock) writeAfter(ctx context.Context, message lockMessage) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: lockSubject, Data: data, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
	ack, err := l.b.js.PublishMsg(ctx, m, jetstream.WithExpectStream(streamName),
		jetstream.WithExpectLastSequencePerSubject(l.sequence))
	if natserr.IsConflict(err) {
		return ErrLocked
	}
	if err == nil {
		l.sequence = ack.Sequence
	}
	return natserr.PermissionError(l.b.js.Conn(), err, m.Subject)
}

// renew renews the lock until ctx ends. If the lock is lost, or cannot be renewed for half its
// lease, renew cancels ctx.
func (l *Lock) renew(ctx context.Context) {
	defer close(l.done)
	tick := time.NewTicker(l.b.lease / 4)
	defer tick.Stop()
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		err := l.write(context.WithoutCancel(ctx), l.message()) // runs to its end, to learn its sequence
		switch {
		case err == nil:
			renewed = began
		case errors.Is(err, ErrLocked), time.Since(renewed) > l.b.lease/2:
			l.cancel(fmt.Errorf("the lock was lost: %w", err))
			return
		}
	}
}
