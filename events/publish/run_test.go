package publish_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

func TestPublishAll(t *testing.T) {
	t.Parallel()
	evs := eventstest.Events(2500, 3)
	for _, c := range []struct {
		name   string
		before int // of evs are there already
		mutate func(*jetstream.StreamConfig)
	}{
		{name: "all new"},
		{name: "all there", before: len(evs)},
		{name: "half there", before: 1234},
		{name: "no atomic publishing", mutate: func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false }},
	} {
		t.Run(c.name, func(t *testing.T) {
			js := eventstest.Connect(t, eventstest.Broker(t))
			stream := eventstest.Stream(t, js, func(cfg *jetstream.StreamConfig) {
				if c.mutate != nil {
					c.mutate(cfg)
				}
			})
			eventstest.Publish(t, js, evs[:c.before]...)
			var progress []publish.Summary
			p := publish.New(js, publish.Config{
				Stream: events.DefaultStream, Progress: func(s publish.Summary) { progress = append(progress, s) },
			})
			sum, err := p.PublishAll(t.Context(), messages(evs))
			want := publish.Summary{Sent: len(evs) - c.before, Duplicates: c.before, LastSequence: uint64(len(evs))}
			if err != nil || sum != want {
				t.Fatalf("%+v, %v; want %+v", sum, err, want)
			}
			if len(progress) != 3 || progress[2] != sum {
				t.Errorf("progress %+v", progress)
			}
			sameEvents(t, readAll(t, stream), evs)
		})
	}
}

// Promise 1 needs it: whatever is repeated, removed, known already or in one batch, the
// messages of a subject are stored in the order in which they were given.
func TestPublishAllKeepsTheOrderOfASubject(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 })
	base := eventstest.Entries(30, 9)
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		require.NoError(t, stream.Purge(context.Background()))
		n := rapid.IntRange(1, 80).Draw(t, "events")
		evs := make([]events.Event, n)
		for i := range evs {
			e := base[rapid.IntRange(0, len(base)-1).Draw(t, "entry")]
			evs[i] = eventstest.Listed(e, i)
			if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
				evs[i] = delisted(e)
			}
			evs[i].ID = fmt.Sprintf("run%d.%d", run, i)
		}
		p := publish.New(js, publish.Config{BatchSize: rapid.IntRange(1, 80).Draw(t, "batch")})
		first := rapid.IntRange(0, n).Draw(t, "there")
		if _, err := p.PublishAll(context.Background(), messages(evs[:first])); err != nil {
			t.Fatal(err)
		}
		sum, err := p.PublishAll(context.Background(), messages(evs))
		if err != nil || sum.Sent != n-first || sum.Duplicates != first {
			t.Fatalf("%+v, %v; %d of %d were there", sum, err, first, n)
		}
		sameEvents(t, readAll(t, stream), evs)
	})
}

// What is not acknowledged is sent again, with its id, and stored once.
func TestPublishAllAfterALostAcknowledgement(t *testing.T) {
	for _, atomically := range []bool{true, false} {
		b := eventstest.Broker(t)
		stream := eventstest.Stream(t, eventstest.Connect(t, b), func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = atomically })
		var lost atomic.Bool
		nc, err := nats.Connect(b.ClientURL(), nats.SetCustomDialer(dialer(func(read []byte) bool {
			ack := bytes.Contains(read, []byte(`"seq":`)) && !bytes.Contains(read, []byte(`"error":`))
			return ack && bytes.Contains(read, []byte(`"batch":`)) == atomically && lost.CompareAndSwap(false, true)
		})))
		require.NoError(t, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		evs := eventstest.Events(300, 4)
		p := publish.New(js, publish.Config{BatchSize: 100, Timeout: 500 * time.Millisecond})
		sum, err := p.PublishAll(t.Context(), messages(evs))
		if err != nil || sum.Sent+sum.Duplicates != 300 || sum.LastSequence != 300 {
			t.Errorf("%+v, %v", sum, err)
		}
		if !lost.Load() || sum.Duplicates == 0 || (atomically && sum.Duplicates != 100) {
			t.Errorf("lost: %v, %+v", lost.Load(), sum)
		}
		sameEvents(t, readAll(t, stream), evs)
	}
}

// dialer makes connections that lose every read for which it is true.
type dialer func(read []byte) bool

func (d dialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return &lossy{c, d}, err
}

type lossy struct {
	net.Conn
	lose func([]byte) bool
}

func (l *lossy) Read(p []byte) (int, error) {
	for {
		n, err := l.Conn.Read(p)
		if err != nil || !l.lose(p[:n]) {
			return n, err
		}
	}
}

func TestPublishAllSendsNothingWhenOneIsWrong(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	good := messages(eventstest.Events(3, 1))
	other, err := events.Encode(good[1].Event)
	require.NoError(t, err)
	for name, bad := range map[string]publish.Message{
		"event":           {Event: events.Event{ID: "x"}},
		"payload":         {Payload: []byte(`{}`)},
		"another payload": {Event: good[0].Event, Payload: other},
		"headers too":     {Event: good[0].Event, Payload: padded(t, good[0].Event, events.MaxPayload)},
	} {
		_, err := newPublisher(js).PublishAll(t.Context(), append(good[:2:2], bad))
		var at *publish.MessageError
		var reason *events.Error
		if !errors.As(err, &at) || at.Index != 2 || !errors.As(err, &reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := stored(t, stream); n != 0 {
		t.Error(n, "messages were sent")
	}
}

// padded is e with an unknown member that fills it up to size bytes.
func padded(t *testing.T, e events.Event, size int) []byte {
	t.Helper()
	payload, err := events.Encode(e)
	require.NoError(t, err)
	fill := size - len(payload) - len(`"x":"",`)
	return append([]byte(`{"x":"`+string(bytes.Repeat([]byte("x"), fill))+`",`), payload[1:]...)
}

// Payloads are sent as they are, unknown members included, up to the broker's bound.
func TestPublishAllSendsRawPayloads(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	var msgs []publish.Message
	for i, e := range eventstest.Events(10, 1) {
		size := 2000
		if i == 5 {
			size = events.MaxPayload - 150
		}
		m, err := publish.ParseMessage(padded(t, e, size))
		require.NoError(t, err)
		msgs = append(msgs, m)
	}
	// With its batch headers the sixth is too long for the broker, alone it is not.
	p := publish.New(js, publish.Config{})
	sum, err := p.PublishAll(t.Context(), msgs)
	if err != nil || sum.Sent != 10 {
		t.Fatal(sum, err)
	}
	for i, m := range msgs {
		got, err := stream.GetMsg(t.Context(), uint64(i+1))
		if err != nil || !bytes.Equal(got.Data, m.Payload) {
			t.Errorf("message %d is not what was given: %v", i, err)
		}
	}
}

// A full stream refuses what is new; the error names the first message that is not stored.
func TestPublishAllIntoAFullStream(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js, func(c *jetstream.StreamConfig) { c.MaxMsgs = 150 })
	p := publish.New(js, publish.Config{BatchSize: 100})
	sum, err := p.PublishAll(t.Context(), messages(eventstest.Events(300, 5)))
	var at *publish.MessageError
	if !errors.As(err, &at) || at.Index != 150 || sum.Sent != 150 {
		t.Errorf("%+v, %v", sum, err)
	}
	if n := stored(t, stream); n != 150 {
		t.Error(n, "messages are stored")
	}
}

func TestPublishAllStopsWithItsContext(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	eventstest.Stream(t, js)
	ctx, cancel := context.WithCancel(t.Context())
	p := publish.New(js, publish.Config{BatchSize: 10, Progress: func(publish.Summary) { cancel() }})
	sum, err := p.PublishAll(ctx, messages(eventstest.Events(30, 1)))
	if !errors.Is(err, context.Canceled) || sum.Sent != 10 {
		t.Error(sum, err)
	}
}

// readAll reads what the stream keeps, in order.
func readAll(t rapid.TB, s jetstream.Stream) []events.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	info, err := s.Info(ctx)
	require.NoError(t, err)
	var out []events.Event
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		msg, err := s.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		require.NoError(t, err)
		e, err := events.DecodeMessage(msg.Subject, msg.Data)
		require.NoError(t, err)
		out = append(out, e)
	}
	return out
}

func sameEvents(t rapid.TB, got, want []events.Event) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events are stored, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("event %d is %v, want %v", i, got[i], want[i])
		}
	}
}
