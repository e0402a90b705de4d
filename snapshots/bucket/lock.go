package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// lockSubject is the lock: held while its last message names a holder and is younger than its lease.
const lockSubject = chunkPrefix + "lock"

// ErrBusy says that another process holds the lock.
var ErrBusy = errors.New("another server is making a snapshot")

// Lock is held by one process at a time. While it is, a goroutine renews it; Release ends that.
type Lock struct {
	b        *Bucket
	sequence uint64 // of the lock's last message, which is ours; owned by renew, then by Release
	cancel   context.CancelCauseFunc
	done     chan struct{}
}

// held is the lock's message.
type held struct {
	Holder string        `json:"holder"` // empty: free
	Lease  time.Duration `json:"lease"`  // nanoseconds
}

// Lock takes the lock, without waiting: the error matches ErrBusy when somebody else has it. The context
// that it returns ends with ctx, and when the lock is lost. The caller ends the lock with Release.
func (b *Bucket) Lock(ctx context.Context) (context.Context, *Lock, error) {
	s, err := b.stream(ctx)
	if err != nil {
		return nil, nil, err
	}
	before, err := b.free(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	l := &Lock{b: b, sequence: before, done: make(chan struct{})}
	if err := l.write(ctx, held{b.cfg.Holder, b.cfg.Lease}); err != nil {
		return nil, nil, err
	}
	ctx, l.cancel = context.WithCancelCause(ctx)
	go l.renew(ctx)
	return ctx, l, nil
}

// free is the sequence of the lock's last message, 0 when there is none, if nobody holds it.
func (b *Bucket) free(ctx context.Context, s jetstream.Stream) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	m, err := s.GetLastMsgForSubject(ctx, lockSubject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return 0, err
	}
	var h held
	if json.Unmarshal(m.Data, &h) == nil && h.Holder != "" && info.TimeStamp.Sub(m.Time) < h.Lease {
		return 0, fmt.Errorf("%w: %.100q has begun %s ago", ErrBusy, h.Holder, info.TimeStamp.Sub(m.Time).Round(time.Second))
	}
	return m.Sequence, nil
}

// write replaces the lock's message, if it is still the one that was seen last.
func (l *Lock) write(ctx context.Context, h held) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: lockSubject, Data: data, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
	ack, err := l.b.js.PublishMsg(ctx, m, jetstream.WithExpectStream(streamName),
		jetstream.WithExpectLastSequencePerSubject(l.sequence))
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return ErrBusy
	}
	if err == nil {
		l.sequence = ack.Sequence
	}
	return l.b.explained(err, m.Subject)
}

// renew keeps the lock until ctx ends. When it is lost, or cannot be renewed before its lease ends,
// ctx is cancelled.
func (l *Lock) renew(ctx context.Context) {
	defer close(l.done)
	tick := time.NewTicker(l.b.cfg.Lease / 4)
	defer tick.Stop()
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		err := l.write(context.WithoutCancel(ctx), held{l.b.cfg.Holder, l.b.cfg.Lease}) // to know its sequence
		switch {
		case err == nil:
			renewed = began
		case errors.Is(err, ErrBusy), time.Since(renewed) > l.b.cfg.Lease/2:
			l.cancel(fmt.Errorf("the lock was lost: %w", err))
			return
		}
	}
}

// Release gives the lock back. Where that fails its lease ends it.
func (l *Lock) Release() {
	l.cancel(nil)
	<-l.done
	_ = l.write(context.Background(), held{})
}
