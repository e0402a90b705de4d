package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
	"example.org/registry/projector/lineage"
)

const (
	inFlight  = 256                       // events that wait for their acknowledgments
	ackWithin = 5 * leader.RequestTimeout // each of them, at most
)

// Publish begins p's new history, if there is one, after which p begins none; then it publishes what
// the stream lacks. conflicts counts where somebody else has published since p was made: compare again.
// done, if not nil, is called after each event.
func Publish(ctx context.Context, s leader.Stream, p *Plan, done func()) (published, conflicts int, err error) {
	if p.Begins {
		if _, err := lineage.Begin(ctx, s, p.history, p.last); natserr.IsConflict(err) {
			return 0, 1, nil
		} else if err != nil {
			return 0, 0, err
		}
		p.Begins = false
	}
	js, err := jetstream.New(s.JS.Conn(), jetstream.WithPublishAsyncMaxPending(inFlight), jetstream.WithPublishAsyncTimeout(ackWithin))
	if err != nil {
		return 0, 0, err
	}
	refused := time.NewTicker(200 * time.Millisecond)
	defer refused.Stop()
	var waiting []jetstream.PubAckFuture
	settle := func(keep int) error {
		for len(waiting) > keep {
			first := waiting[0]
			waiting = waiting[1:]
			select {
			case <-first.Ok():
				published++
			case err := <-first.Err():
				if !natserr.IsConflict(err) {
					return fmt.Errorf("publish on %s: %w", events.MaskSubject(first.Msg().Subject, nil), natserr.PermissionError(s.JS.Conn(), err, "")) // the last error is that of any of those that wait
				}
				conflicts++
			case <-refused.C: // the broker tells of a missing right on the connection, never to the message
				err := natserr.PermissionError(s.JS.Conn(), jetstream.ErrAsyncPublishTimeout, "")
				if errors.Is(err, natserr.ErrRefused) {
					return err
				}
				waiting = append([]jetstream.PubAckFuture{first}, waiting...)
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
			if done != nil {
				done()
			}
		}
		return nil
	}
	for _, c := range p.Changes {
		msg, err := c.message(s.Name)
		if err != nil {
			return published, conflicts, err
		}
		future, err := js.PublishMsgAsync(msg, jetstream.WithExpectLastSequencePerSubject(c.Last))
		if err != nil {
			return published, conflicts, err
		}
		waiting = append(waiting, future)
		if err := settle(inFlight - 1); err != nil {
			return published, conflicts, err
		}
	}
	err = settle(0)
	return published, conflicts, err
}

// message is the event that sets c's state. Its id is fresh: the broker drops a message whose id it
// has stored within two minutes, though the stream may have lost that.
func (c Change) message(stream string) (*nats.Msg, error) {
	e := events.StateEvent(c.Data)
	e.ID = events.NewEventID()
	payload, err := events.Encode(e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Data.Subject().Masked(), err)
	}
	return &nats.Msg{Subject: c.Data.Subject().String(), Data: payload, Header: nats.Header{
		events.HeaderContent: {events.ContentType}, jetstream.MsgIDHeader: {e.ID}, jetstream.ExpectedStreamHeader: {stream},
	}}, nil
}
