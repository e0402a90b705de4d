package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/leader"
	"example.org/registry/events/natserr"
)

// maxAnswer bounds the bytes of one answer about last messages, far below the client's own bound. A
// longer answer comes in parts.
const maxAnswer = 8 << 20

// known is the last state that a stream has on a subject.
type known struct {
	data     events.Data
	sequence uint64
}

// revision returns the revision of k, or 0 if nothing is known.
func (k known) revision() int64 {
	if k.data == nil {
		return 0
	}
	return events.Revision(k.data)
}

// lastStates returns the states that the last messages of different subjects carry. A subject without
// a message, or whose last message does not decode, is absent. Any replica may answer, so the result
// may be a little old.
func (p *Publisher) lastStates(ctx context.Context, stream string, subjects []string) (map[string]known, error) {
	states := make(map[string]known, len(subjects))
	for len(subjects) > 0 {
		seen := make(map[string]struct{}, len(subjects))
		complete, err := p.askLast(ctx, stream, subjects, func(m *nats.Msg) error {
			subject := added(m, jetstream.SubjectHeader)
			seq, err := strconv.ParseUint(added(m, jetstream.SequenceHeader), 10, 64)
			if err != nil {
				return fmt.Errorf("the broker's answer has no sequence: %w", err)
			}
			seen[subject] = struct{}{}
			stored := leader.Message{Subject: subject, Data: m.Data, Header: m.Header}
			if e, err := stored.Event(); err == nil {
				states[subject] = known{e.Data, seq}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("last messages of %s: %w", stream, err)
		}
		if complete || len(seen) == 0 {
			return states, nil
		}
		rest := subjects[:0:0]
		for _, s := range subjects {
			if _, there := seen[s]; !there {
				rest = append(rest, s)
			}
		}
		subjects = rest
	}
	return states, nil
}

// askLast asks once for the last messages of subjects, at most 1,024, and calls each with every answer.
// complete is false if the broker has more. nats.go has no client for it.
func (p *Publisher) askLast(ctx context.Context, stream string, subjects []string, each func(*nats.Msg) error) (complete bool, err error) {
	request, err := json.Marshal(map[string]any{"multi_last": subjects, "batch": len(subjects), "max_bytes": maxAnswer})
	if err != nil {
		return false, err
	}
	nc := p.js.Conn()
	answers := make(chan *nats.Msg, len(subjects)+1) // a channel, as the client takes a stored Status for the broker's own
	sub, err := nc.ChanSubscribe(nc.NewInbox(), answers)
	if err != nil {
		return false, err
	}
	defer func() { _ = sub.Unsubscribe() }() // a lost connection has ended it already
	api := leader.Stream{JS: p.js}.Prefix() + "DIRECT.GET." + stream
	if err := nc.PublishRequest(api, sub.Subject, request); err != nil {
		return false, err
	}
	silence := time.NewTimer(p.cfg.Timeout)
	defer silence.Stop()
	for {
		var m *nats.Msg
		select {
		case m = <-answers:
			silence.Reset(p.cfg.Timeout)
		case <-ctx.Done():
			return false, ctx.Err()
		case <-silence.C:
			return false, natserr.PermissionError(nc, nats.ErrTimeout, api)
		}
		switch status, text := m.Header.Get("Status"), m.Header.Get("Description"); {
		case m.Header == nil: // stored with headers that cannot be read, so it was rejected
		case added(m, jetstream.SubjectHeader) != "":
			if err := each(m); err != nil {
				return false, err
			}
		case status == "204":
			return m.Header.Get("Nats-Num-Pending") == "0", nil
		case status == "404" && text == "No Results":
			return true, nil
		case status == "503":
			return false, errors.New("the stream is missing, or does not answer direct requests; permit them: nats stream edit --allow-direct")
		default:
			return false, fmt.Errorf("the broker says %s %s", status, text)
		}
	}
}

// added returns the last value of a header, which the broker has added to a stored message.
func added(m *nats.Msg, name string) string {
	values := m.Header[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// streamName returns the stream that stores the events.
func (p *Publisher) streamName(ctx context.Context) (string, error) {
	if p.cfg.Stream != "" {
		return p.cfg.Stream, nil
	}
	name, err := p.js.StreamNameBySubject(ctx, events.StreamSubjects)
	if err != nil {
		return "", fmt.Errorf("stream of %s: %w", events.StreamSubjects, natserr.PermissionError(p.js.Conn(), err, ""))
	}
	return name, nil
}

// checkAhead returns an *events.Error if d's revision is too far ahead and not known to the stream.
// It asks the stream only about such a revision.
func (p *Publisher) checkAhead(ctx context.Context, d events.Data) error {
	ahead := events.CheckRevision(d, 0, time.Now())
	if ahead == nil {
		return nil
	}
	stream, err := p.streamName(ctx)
	if err != nil {
		return err
	}
	subject := d.Subject().String()
	states, err := p.lastStates(ctx, stream, []string{subject})
	if err != nil {
		return err
	}
	return events.CheckRevision(d, states[subject].revision(), time.Now())
}
