package leader_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
)

// blocks are headers as a publisher may store them: those of a client, the broker's own, and bytes
// that are none.
var blocks = []string{
	"", "NATS/1.0\r\nNats-Msg-Id: a\r\n\r\n",
	"NATS/1.0\r\nStatus: 100\r\n\r\n", "NATS/1.0\r\nStatus: 408\r\n\r\n", "NATS/1.0\r\nStatus: 409\r\nDescription: Consumer Deleted\r\n\r\n",
	"NATS/1.0\r\nStatus: 404\r\nNats-Pending-Messages: 2000\r\nNats-Pending-Bytes: 9999999\r\n\r\n", "NATS/1.0\r\nStatus: Sold\r\n\r\n",
	"NATS/1.0 503 No Responders\r\n\r\n", "NATS/1.0\r\nno colon\r\n\r\n", "garbage", "NATS/1.0\r\nA: b\r\n", "N", "\x00\xff\r\n\r\n",
}

// No message of a stream stops its reader, whatever its headers are and whether it has a body, and
// both ways to read one give the same.
func TestEveryStoredMessageIsRead(t *testing.T) {
	t.Parallel()
	b := eventstest.Broker(t)
	js := eventstest.Connect(t, b, quiet)
	eventstest.Stream(t, js)
	raw := eventstest.DialRaw(t, b.Addr())
	stored := 0
	for round := range 3 {
		for i, block := range blocks {
			for _, payload := range []string{"", "{}"} {
				if round > 0 && i == 1 { // the broker drops a second message with an id
					continue
				}
				raw.Publish(fmt.Sprintf("registry.scammers.x%d-%d%d", round, i, len(payload)), block, []byte(payload))
				stored++
			}
		}
	}
	s := leader.Stream{JS: js, Name: events.DefaultStream}
	read := 0
	began := time.Now()
	require.NoError(t, s.ReadAfter(t.Context(), "test", 0, func(m leader.Message) {
		read++
		one, err := s.Message(t.Context(), m.Sequence)
		require.NoError(t, err)
		require.True(t, one.Time.Equal(m.Time))
		one.Time, m.Time = time.Time{}, time.Time{}
		if len(one.Data) == 0 { // nil or not
			one.Data, m.Data = nil, nil
		}
		require.Equal(t, one, m)
		_, err = m.Event()
		require.Error(t, err)
	}))
	if read != stored-1 { // the message id of the two that have one is the same
		t.Errorf("%d of %d messages", read, stored-1)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("read in %v: a consumer was silent or lost", took)
	}
}

// quiet keeps the library from writing to the test's output what it thinks of a message.
func quiet(o *nats.Options) error {
	o.AsyncErrorCB = func(*nats.Conn, *nats.Subscription, error) {}
	return nil
}

// A reader asks for more as it reads, few messages at once or many, and knows the end.
func TestReaderAsksForMore(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	const n = 500
	for i := range n {
		eventstest.PublishRaw(t, js, fmt.Sprintf("registry.servers.s%d", i), make([]byte, 40<<10)) // 20 MB, more than is requested at once
	}
	for _, pull := range []int{1, 2, 7, 0} {
		r, err := leader.Stream{JS: js, Name: events.DefaultStream}.NewReader(t.Context(), leader.ReaderConfig{After: 3, Pull: pull})
		require.NoError(t, err)
		if r.Pending != n-3 {
			t.Errorf("%d pending", r.Pending)
		}
		for next := uint64(4); next <= n; {
			batch, err := r.Read(t.Context(), 50, 1<<20)
			require.NoError(t, err)
			if len(batch) > 50 || len(batch) > 1+1<<20/(40<<10) {
				t.Errorf("%d at once", len(batch))
			}
			for _, d := range batch {
				if d.Sequence != next || d.AtEnd != (next == n) {
					t.Fatalf("%d for %d, at the end: %v", d.Sequence, next, d.AtEnd)
				}
				next++
			}
		}
		r.Close()
	}
	for range stream.ListConsumers(t.Context()).Info() {
		t.Error("a consumer is left")
	}
}

// A reader without a stream, or whose consumer is gone, ends with the reason, soon.
func TestReaderEnds(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	s := leader.Stream{JS: js, Name: events.DefaultStream}
	_, err := s.NewReader(t.Context(), leader.ReaderConfig{})
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
	stream := eventstest.Stream(t, js)
	r, err := s.NewReader(t.Context(), leader.ReaderConfig{})
	require.NoError(t, err)
	defer r.Close()
	for name := range stream.ConsumerNames(t.Context()).Name() {
		require.NoError(t, js.DeleteConsumer(t.Context(), events.DefaultStream, name))
	}
	_, err = r.Read(t.Context(), 1, 1)
	require.Error(t, err)
	_, again := r.Read(t.Context(), 1, 1)
	require.Equal(t, err, again)
}

// A delivery that is lost on the way is read again, in order and once, and so is a second one; what
// was purged meanwhile is no loss.
func TestReadAllWithLostDeliveries(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	long := []byte(strings.Repeat("x", 200<<10)) // more in all than the broker sends at once
	const n = 150
	for i := range n {
		eventstest.PublishRaw(t, js, fmt.Sprintf("registry.servers.s%d", i), long)
	}
	// Another client takes a delivery of the reader's, whose pulls end long before the end.
	take := func() {
		for name := range stream.ConsumerNames(t.Context()).Name() {
			c, err := js.Consumer(t.Context(), events.DefaultStream, name)
			require.NoError(t, err)
			_, err = c.Next()
			require.NoError(t, err)
		}
	}
	var want, last uint64
	err := leader.Stream{JS: js, Name: events.DefaultStream}.ReadAfter(t.Context(), "test", 0, func(m leader.Message) {
		if want++; m.Sequence != want {
			t.Errorf("message %d came as %d", m.Sequence, want)
		}
		if last = m.Sequence; last == 1 || last == 60 {
			take()
		}
		if last == 61 {
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("registry.servers.s149")); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || last != n-1 {
		t.Fatalf("%v after message %d", err, last)
	}
}
