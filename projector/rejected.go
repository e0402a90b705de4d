package projector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/stream"
	"example.org/registry/readmodel"
)

// rejection is a rejected event, and the reason.
type rejection struct {
	message stream.Message
	reason  string // one line, at most 200 bytes
}

const (
	// copiesAtOnce bounds the concurrent requests for copies.
	copiesAtOnce = 32

	// countAfter is the wait after a failed count: the account may forbid counting.
	countAfter = time.Minute
)

// rejectReasons returns why an event is rejected: it is invalid (err), or it lost against the known state (loss).
// plain, for the log, has no text from the event.
func rejectReasons(err error, loss readmodel.Loss) (reason, plain string) {
	if bad, isEvent := errors.AsType[*events.Error](err); isEvent {
		return bad.Error(), bad.Plain()
	}

	reason = fmt.Sprintf("known revision %d", loss.Known)
	if loss.Conflict {
		reason = fmt.Sprintf("revision %d has another state", loss.Known)
	}
	return reason, reason
}

// copier stores copies of rejected events for the backend.
type copier struct {
	stream    stream.Stream // of the copies
	replicas  int
	nextCount time.Time // when count may ask again; only Run's goroutine uses it
}

// copyAll copies rejected events of an epoch. A second copy of an event replaces the first copy.
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
		group.Go(func() error { return c.publishCopy(ctx, epoch, r) })
	}
	return group.Wait()
}

// ensureStream creates the stream of rejected events if it is missing.
func (c *copier) ensureStream(ctx context.Context) error {
	if _, err := c.stream.Ensure(ctx, stream.RejectedConfig(c.replicas)); err != nil {
		return fmt.Errorf("stream %s: %w", c.stream.Name, err)
	}
	return nil
}

func (c *copier) publishCopy(ctx context.Context, epoch string, r rejection) error {
	nc := c.stream.JS.Conn()
	if !nc.IsConnected() {
		return stream.ErrNotConnected
	}
	ctx, cancel := context.WithTimeout(ctx, stream.RequestTimeout)
	defer cancel()
	_, err := c.stream.JS.PublishMsg(ctx, newCopy(epoch, r), jetstream.WithExpectStream(events.RejectedStream))
	return natserr.Explain(nc, err, events.RejectedPrefix)
}

func newCopy(epoch string, r rejection) *nats.Msg {
	m := r.message
	seq := strconv.FormatUint(m.Sequence, 10)
	copied := &nats.Msg{
		Subject: events.RejectedPrefix + subjectToken(epoch) + "." + seq,
		Header: nats.Header{
			events.HeaderReason:   {r.reason},
			events.HeaderSequence: {seq},
			events.HeaderSubject:  {m.Subject},
			events.HeaderTime:     {m.Time.UTC().Format(time.RFC3339Nano)},
		},
		Data: m.Data,
	}

	if len(m.Data) > events.MaxRejected {
		copied.Data = m.Data[:events.MaxRejected]
		copied.Header.Set(events.HeaderTruncated, "1")
	}
	return copied
}

// subjectToken turns an epoch into one token of a subject. It changes only epochs that another program has made.
func subjectToken(epoch string) string {
	return strings.NewReplacer(".", "_", "*", "_", ">", "_", " ", "_").Replace(epoch)
}

// count returns the number of copies, whichever stream the events came from. After a failure, ok is false until
// countAfter has passed.
func (c *copier) count(ctx context.Context) (copies uint64, ok bool) {
	if time.Now().Before(c.nextCount) {
		return 0, false
	}

	info, err := c.stream.Info(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, true
	}
	if err != nil {
		c.nextCount = time.Now().Add(countAfter)
		return 0, false
	}
	return info.State.Msgs, true
}

// Rejection describes a copy of a rejected event. Its texts are not trusted.
type Rejection struct {
	Sequence  uint64    // of the event
	Subject   string    // of the event
	Reason    string    // one line
	Time      time.Time // when the broker stored the event
	Truncated bool      // the copy was cut at events.MaxRejected
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
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break // that was the last copy
		}
		if err != nil {
			return nil, err
		}
		if r, ok := parseRejection(&m); ok {
			all = append(all, r)
		}
		next = m.Sequence + 1
	}

	slices.SortFunc(all, func(a, b Rejection) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Sequence, b.Sequence))
	})
	return all, nil
}

// parseRejection reads a copy of a rejected event. It returns false for a message that no projector has made.
func parseRejection(m *stream.Message) (Rejection, bool) {
	seq, err := strconv.ParseUint(m.Header.Get(events.HeaderSequence), 10, 64)
	if err != nil {
		return Rejection{}, false
	}

	r := Rejection{
		Sequence: seq, Subject: m.Header.Get(events.HeaderSubject), Reason: m.Header.Get(events.HeaderReason),
		Time: m.Time, Truncated: m.Header.Get(events.HeaderTruncated) != "",
	}
	if stored, err := time.Parse(time.RFC3339Nano, m.Header.Get(events.HeaderTime)); err == nil {
		r.Time = stored
	}
	return r, true
}
