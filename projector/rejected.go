package projector

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
)

// rejection is a rejected event, and why.
type rejection struct {
	message stream.Message
	reason  string // one line, at most 200 bytes
}

// copiesAtOnce bounds the concurrent requests for copies.
const copiesAtOnce = 32

// copier stores copies of rejected events for the backend.
type copier struct {
	stream   stream.Stream // of the copies
	replicas int
	exists   atomic.Bool // the stream of the copies
}

func newCopier(cfg Config) *copier {
	return &copier{stream: stream.Stream{JS: cfg.JetStream, Name: events.RejectedStream}, replicas: cfg.Replicas}
}

// copyAll copies rejected events of an epoch. A repetition replaces a copy.
func (c *copier) copyAll(ctx context.Context, epoch string, rejected []rejection) error {
	if len(rejected) == 0 {
		return nil
	}
	if err := c.ensureStream(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiesAtOnce)
	for _, r := range rejected {
		group.Go(func() error { return c.copyOne(ctx, epoch, r) })
	}
	err := group.Wait()
	if err != nil {
		c.exists.Store(false) // it may have been deleted
	}
	return err
}

// ensureStream creates the stream of rejected events if it is missing.
func (c *copier) ensureStream(ctx context.Context) error {
	if c.exists.Load() {
		return nil
	}
	_, err := c.stream.Info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		creating, cancel := context.WithTimeout(ctx, stream.RequestTimeout)
		defer cancel()
		_, err = c.stream.JS.CreateStream(creating, stream.RejectedConfig(c.replicas))
		err = natserr.Explain(c.stream.JS.Conn(), err, jetstream.DefaultAPIPrefix+"STREAM.CREATE.")
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // a replica was faster
		return fmt.Errorf("stream %s: %w", c.stream.Name, err)
	}
	c.exists.Store(true)
	return nil
}

func (c *copier) copyOne(ctx context.Context, epoch string, r rejection) error {
	nc := c.stream.JS.Conn()
	if !nc.IsConnected() {
		return stream.ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, stream.RequestTimeout)
	defer cancel()
	_, err := c.stream.JS.PublishMsg(ctx, copyOf(epoch, r), jetstream.WithExpectStream(events.RejectedStream))
	return natserr.Explain(nc, err, events.RejectedPrefix)
}

// copyOf returns the copy of a rejected event as it is stored.
func copyOf(epoch string, r rejection) *nats.Msg {
	m := r.message
	sequence := strconv.FormatUint(m.Sequence, 10)
	made := &nats.Msg{
		Subject: events.RejectedPrefix + token(epoch) + "." + sequence,
		Header: nats.Header{
			events.HeaderReason:   {r.reason},
			events.HeaderSequence: {sequence},
			events.HeaderSubject:  {m.Subject},
			events.HeaderTime:     {m.Time.UTC().Format(time.RFC3339Nano)},
		},
		Data: m.Data,
	}
	if len(m.Data) > events.MaxRejected {
		made.Data = m.Data[:events.MaxRejected]
		made.Header.Set(events.HeaderTruncated, "1")
	}
	return made
}

// token turns an epoch into one token of a subject. Those that this program makes stay as they are.
func token(epoch string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case '0' <= r && r <= '9', 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z', r == '-', r == '_':
			return r
		}
		return '_'
	}, epoch)
}

// count returns how many copies there are, of any stream's events.
func (c *copier) count(ctx context.Context) (uint64, error) {
	info, err := c.stream.Info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.State.Msgs, nil
}

// Rejection describes a copy of a rejected event. Strangers wrote its texts.
type Rejection struct {
	Epoch     string    // of the event's stream, as in the copy's subject
	Sequence  uint64    // of the event
	Subject   string    // of the event
	Reason    string    // one line
	Time      time.Time // when the broker stored the event
	Truncated bool      // the copy was cut at events.MaxRejected
}

// Of reports whether the event is of a stream, or of one that it follows.
func (r *Rejection) Of(id stream.Identity) bool {
	return slices.ContainsFunc(id.Epochs(), func(epoch string) bool { return token(epoch) == r.Epoch })
}

// ListRejected returns the copies of rejected events, by the time of the event.
func ListRejected(ctx context.Context, js jetstream.JetStream) (all []Rejection, err error) {
	copies := stream.Stream{JS: js, Name: events.RejectedStream}
	_, err = copies.Info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	for next := uint64(1); ; {
		m, err := copies.NextMessage(ctx, next)
		if errors.Is(err, stream.ErrNoMessage) {
			break
		}
		if err != nil {
			return nil, err
		}
		next = m.Sequence + 1
		if r, ok := parseRejection(&m); ok {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Rejection) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Sequence, b.Sequence))
	})
	return all, nil
}

// parseRejection reads a copy. It returns false for a message that no projector made.
func parseRejection(m *stream.Message) (Rejection, bool) {
	epoch, number, found := strings.Cut(strings.TrimPrefix(m.Subject, events.RejectedPrefix), ".")
	sequence, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil {
		return Rejection{}, false
	}
	r := Rejection{
		Epoch: epoch, Sequence: sequence, Subject: m.Header.Get(events.HeaderSubject), Reason: m.Header.Get(events.HeaderReason),
		Time: m.Time, Truncated: m.Header.Get(events.HeaderTruncated) != "",
	}
	if at, err := time.Parse(time.RFC3339Nano, m.Header.Get(events.HeaderTime)); err == nil {
		r.Time = at
	}
	return r, true
}

// isRemoval reports whether a line may be a removal's.
func isRemoval(line []byte) bool {
	return bytes.Contains(line, []byte(events.TypeDelisted)) || bytes.Contains(line, []byte(events.TypeDonationRemoved))
}
