package leader

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/natserr"
	"example.org/registry/events/pause"
)

const (
	pullMessages = 2000        // messages requested at once, unless ReaderConfig has another number
	pullBytes    = 8 << 20     // bytes requested at once
	maxPullBytes = 128 << 20   // the same, for a broker with messages of more than pullBytes
	pullExpires  = time.Minute // after that, the broker ends a request that it could not fill

	// heartbeat is the broker's sign of life on an idle pull; two missing ones end the reading.
	heartbeat = time.Second

	// consumerLife is how long the broker keeps an unused consumer.
	consumerLife = time.Minute

	// deleteTimeout bounds the request to delete a consumer. Most readings end because of a problem
	// with the broker, which then does not answer, and the next one waits for this request.
	deleteTimeout = 500 * time.Millisecond

	// maxStatuses is how many statuses of the broker may wait unread: a caller that reads nothing
	// until a pull expires gets one a heartbeat, and a few more about the pulls themselves.
	maxStatuses = 4 * int(pullExpires/heartbeat)
)

// Reasons for the end of a reading without an error of the broker.
var (
	ErrGap            = errors.New("a delivery is missing")
	ErrConnectionLost = errors.New("the connection was lost")
)

// Delivery is a stored message, as a Reader receives it.
type Delivery struct {
	Message
	AtEnd bool // nothing was pending after it when the broker sent it
}

// ReaderConfig configures a Reader. The zero value reads the whole stream.
type ReaderConfig struct {
	Description string // of the consumer, shown where an operator lists the broker's consumers
	After       uint64 // sequence after which the reading starts
	Pull        int    // messages requested at once; 0 means 2,000
}

// Reader reads the messages of a stream in order, each once, by an ephemeral consumer without
// acknowledgments. One goroutine at a time may use it. Close ends it.
//
// The client library's readers are not used. They take a message without a body and with a
// header "Status" for one that the broker itself sends, and a publisher can store such a message:
// they would never read it, nor what follows it. A Reader goes by the reply subject, which only the
// broker sets.
type Reader struct {
	js       jetstream.JetStream
	stream   string
	consumer string
	next     string // subject of pull requests
	inbox    string
	sub      *nats.Subscription
	in       chan *nats.Msg
	changes  chan nats.Status

	// Pending is how many messages the consumer had to deliver when it was made.
	Pending uint64

	pull, bytes             int // requested at once
	openMessages, openBytes int // requested and not yet taken from in
	delivered               uint64
	failed                  error // ends the reading at the next call
}

// NewReader makes a consumer. Nothing is requested before the first Read.
func (s Stream) NewReader(ctx context.Context, cfg ReaderConfig) (*Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	c, err := s.JS.CreateConsumer(ctx, s.Name, jetstream.ConsumerConfig{
		Description:       cfg.Description,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       cfg.After + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: consumerLife,
	})
	nc := s.JS.Conn()
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", natserr.Explain(nc, err, s.Prefix()+"CONSUMER.CREATE."+s.Name))
	}
	r := &Reader{
		js:       s.JS,
		stream:   s.Name,
		consumer: c.CachedInfo().Name,
		next:     s.Prefix() + "CONSUMER.MSG.NEXT." + s.Name + "." + c.CachedInfo().Name,
		inbox:    nc.NewInbox(),
		Pending:  c.CachedInfo().NumPending,
		pull:     cmp.Or(cfg.Pull, pullMessages),
		bytes:    pullBytes,
	}
	r.in = make(chan *nats.Msg, r.pull+maxStatuses)
	r.changes = nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING, nats.CLOSED)
	if r.sub, err = nc.ChanSubscribe(r.inbox, r.in); err != nil {
		r.Close()
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return r, nil
}

// Close deletes the consumer. What was delivered and not read is dropped.
func (r *Reader) Close() {
	nc := r.js.Conn()
	nc.RemoveStatusListener(r.changes)
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // fails only if the connection is closed
	}
	if !nc.IsConnected() {
		return // the broker deletes it after consumerLife
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	_ = r.js.DeleteConsumer(ctx, r.stream, r.consumer) // as before
}

// Read waits for a message, and returns it with those that have arrived meanwhile. A batch ends once it
// has as many messages, or bytes, as the caller wants. An error ends the reading: the caller goes on
// with a new Reader, after the last message that it got. The error is ErrGap, ErrConnectionLost, that
// of ctx, or the broker's.
func (r *Reader) Read(ctx context.Context, messages, bytes int) (batch []Delivery, err error) {
	silent := time.NewTimer(2 * heartbeat)
	defer silent.Stop()
	for r.failed == nil {
		if r.failed = r.request(); r.failed != nil {
			break
		}
		m, err := r.receive(ctx, silent.C, len(batch) == 0)
		if err != nil || m == nil {
			r.failed = err
			break
		}
		silent.Reset(2 * heartbeat)
		d, stored, err := r.take(m)
		if err != nil || !stored {
			r.failed = err
			continue
		}
		batch = append(batch, d)
		if bytes -= len(d.Data); len(batch) >= messages || bytes <= 0 {
			break
		}
	}
	if len(batch) > 0 {
		return batch, nil
	}
	return nil, r.failed
}

// receive returns the next message of the broker. If it is not to wait, it may return nil.
func (r *Reader) receive(ctx context.Context, silent <-chan time.Time, wait bool) (*nats.Msg, error) {
	select {
	case m := <-r.in:
		return m, nil
	default:
	}
	if !wait {
		return nil, nil
	}
	select {
	case m := <-r.in:
		return m, nil
	case <-r.changes:
		return nil, ErrConnectionLost
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-silent:
		err := fmt.Errorf("the consumer is silent: %w", nats.ErrTimeout)
		return nil, natserr.PermissionError(r.js.Conn(), err, r.next)
	}
}

// request asks for more messages once half of those asked for before have been taken.
func (r *Reader) request() error {
	if r.openMessages > r.pull/2 && r.openBytes > r.bytes/2 {
		return nil
	}
	messages, bytes := r.pull-r.openMessages, r.bytes-r.openBytes
	if messages <= 0 || bytes <= 0 {
		return nil
	}
	body, err := json.Marshal(struct {
		Expires   time.Duration `json:"expires"`
		Batch     int           `json:"batch"`
		MaxBytes  int           `json:"max_bytes"`
		Heartbeat time.Duration `json:"idle_heartbeat"`
	}{pullExpires, messages, bytes, heartbeat})
	if err != nil {
		return err
	}
	r.openMessages, r.openBytes = r.openMessages+messages, r.openBytes+bytes
	return r.js.Conn().PublishRequest(r.next, r.inbox, body)
}

// take turns what the broker sent into a stored message, or else into what it says about a request.
// Deliveries are numbered: a gap between two means that one was lost on the way, while gaps in
// stream sequences are legal.
func (r *Reader) take(m *nats.Msg) (d Delivery, stored bool, err error) {
	meta, err := m.Metadata() // of the reply subject
	if err != nil {
		return Delivery{}, false, r.status(m)
	}
	r.openMessages, r.openBytes = r.openMessages-1, r.openBytes-m.Size()
	if r.delivered++; meta.Sequence.Consumer != r.delivered {
		return Delivery{}, false, ErrGap
	}
	headers := headers{decoded: m.Header}
	headers.unreadable = m.Header == nil && m.Size() > len(m.Subject)+len(m.Reply)+len(m.Data)
	return Delivery{newMessage(m.Subject, meta.Sequence.Stream, meta.Timestamp, headers, m.Data), meta.NumPending == 0}, true, nil
}

// Headers of the broker's statuses: what it did not deliver of the request that it ends.
const (
	headerPendingMessages = "Nats-Pending-Messages"
	headerPendingBytes    = "Nats-Pending-Bytes"
)

// status handles what the broker says about a request: a sign of life, or its end.
func (r *Reader) status(m *nats.Msg) error {
	code := m.Header.Get("Status")
	if code == "100" {
		return nil
	}
	messages, err := strconv.Atoi(m.Header.Get(headerPendingMessages))
	bytes, errBytes := strconv.Atoi(m.Header.Get(headerPendingBytes))
	if err != nil || errBytes != nil {
		return fmt.Errorf("consumer: the broker says %s %s", code, m.Header.Get("Description"))
	}
	r.openMessages, r.openBytes = r.openMessages-messages, r.openBytes-bytes
	if code == "409" && bytes >= r.bytes { // the next message is longer than all that was requested
		if r.bytes >= maxPullBytes {
			return fmt.Errorf("consumer: the broker says %s %s", code, m.Header.Get("Description"))
		}
		r.bytes *= 2
	}
	return nil
}

// patience is how long ReadAfter goes on without a message.
const patience = 15 * time.Second

// ReadAfter reads the stream from after a sequence to the end that it has now, and calls each with
// every message. A reading that ends early is resumed, unless nothing has arrived for 15 s.
func (s Stream) ReadAfter(ctx context.Context, description string, at uint64, each func(Message)) error {
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	end := info.State.LastSeq
	for progress := time.Now(); at < end; {
		before := at
		whole, err := s.readOn(ctx, ReaderConfig{Description: description, After: at}, end, func(m Message) { at = m.Sequence; each(m) })
		if at > before {
			progress = time.Now()
		}
		switch {
		case whole:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, natserr.ErrRefused), errors.Is(err, jetstream.ErrStreamNotFound), time.Since(progress) > patience:
			return fmt.Errorf("the stream %s could not be read beyond %d: %w", s.Name, at, err)
		}
		pause.For(ctx, heartbeat/4)
	}
	return nil
}

// readOn is one reading of ReadAfter. whole means that nothing up to end is left.
func (s Stream) readOn(ctx context.Context, cfg ReaderConfig, end uint64, each func(Message)) (whole bool, err error) {
	r, err := s.NewReader(ctx, cfg)
	if err != nil {
		return false, err
	}
	defer r.Close()
	if r.Pending == 0 {
		return true, nil // the rest has been erased
	}
	for {
		batch, err := r.readWithin(ctx, patience)
		if err != nil {
			return false, err
		}
		for _, d := range batch {
			if d.Sequence > end {
				return true, nil
			}
			if each(d.Message); d.AtEnd || d.Sequence == end {
				return true, nil // the last messages may have been erased
			}
		}
	}
}

// readWithin is Read with a bound: a broker that cannot read a block of the stream goes on with its
// heartbeats.
func (r *Reader) readWithin(ctx context.Context, bound time.Duration) ([]Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return r.Read(ctx, pullMessages, pullBytes)
}

// headers are the headers of a stored message.
type headers struct {
	decoded    nats.Header
	unreadable bool // there are some, and they do not decode
}

// decodeHeaders decodes a header block as it is stored.
func decodeHeaders(block []byte) headers {
	if len(block) == 0 {
		return headers{}
	}
	decoded, err := nats.DecodeHeadersMsg(block)
	return headers{decoded, err != nil}
}

// newMessage makes a Message of what a broker stores. It cannot fail, so no publisher can store
// what stops a reader.
func newMessage(subject string, sequence uint64, stored time.Time, h headers, data []byte) Message {
	return Message{
		Subject: subject, Sequence: sequence, Time: stored, Data: data,
		Header: h.decoded, Unreadable: h.unreadable, ID: h.decoded.Get(jetstream.MsgIDHeader),
	}
}

// Event returns the event that the message carries, or the reason to reject it. Every reader of
// events uses it, so that all take the same messages for events.
func (m *Message) Event() (events.Event, error) {
	if err := events.CheckHeaders(m.Header); err != nil {
		return events.Event{}, err
	}
	if m.Unreadable {
		return events.Event{}, events.ErrUnreadable
	}
	e, err := events.DecodeMessage(m.Subject, m.Data)
	if err != nil && events.IsBinaryMode(m.Header) {
		err = events.ErrBinaryMode
	}
	return e, err
}
