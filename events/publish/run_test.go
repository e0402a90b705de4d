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
	evs := eventstest.Events(1500, 3)
	for _, c := range []struct {
		name   string
		before int // of evs are there already
	}{
		{name: "all new"},
		{name: "all there", before: len(evs)},
		{name: "half there", before: 734},
	} {
		t.Run(c.name, func(t *testing.T) {
			js := eventstest.Connect(t, eventstest.Broker(t))
			stream := eventstest.Stream(t, js)
			eventstest.Publish(t, js, evs[:c.before]...)
			var progress []publish.Summary
			p := publish.New(js, publish.Config{
				Stream: events.DefaultStream, Progress: func(s publish.Summary) { progress = append(progress, s) },
			})
			sum, err := p.PublishAll(t.Context(), messages(evs))
			want := publish.Summary{Sent: len(evs) - c.before, Known: c.before, LastSequence: uint64(len(evs))}
			require.NoError(t, err)
			require.Equal(t, want, sum)
			require.Len(t, progress, 2)
			require.Equal(t, sum, progress[1])
			require.Equal(t, evs, readAll(t, stream))
		})
	}
}

// Any states, in any order and pieces, with repetitions, in streams that have something or nothing: the
// states of a subject in the stream grow, and its last one is the greatest of all that were given.
func TestPublishAllSendsOnlyWhatIsGreater(t *testing.T) {
	t.Parallel()
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 })
	base := eventstest.Entries(6, 9)
	serial, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		require.NoError(t, stream.Purge(context.Background()))
		greatest := map[events.Subject]events.Data{}
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			p := publish.New(js, publish.Config{})
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				var msgs []publish.Message
				for range rapid.IntRange(1, 40).Draw(t, "events") {
					serial++
					e := state(t, base)
					e.ID = fmt.Sprint("s", serial)
					msgs = append(msgs, publish.Message{Event: e})
					if have := greatest[e.Data.Subject()]; have == nil || events.Compare(e.Data, have) > 0 {
						greatest[e.Data.Subject()] = e.Data
					}
				}
				for len(msgs) > 0 {
					sum, err := p.PublishAll(context.Background(), msgs)
					if err == nil {
						require.Equal(t, len(msgs), sum.Done())
						break
					}
					var at *publish.MessageError
					var wrong *events.Error
					require.ErrorAs(t, err, &at)
					require.ErrorAs(t, err, &wrong)
					require.Equal(t, at.Index, sum.Done())
					msgs = msgs[at.Index+1:]
					refused++
				}
			}
		}
		last := map[events.Subject]events.Data{}
		for _, e := range readAll(t, stream) {
			k := e.Data.Subject()
			if have := last[k]; have != nil && events.Compare(e.Data, have) <= 0 {
				t.Fatalf("%+v is stored after %+v", e.Data, have)
			}
			last[k] = e.Data
		}
		for k, want := range greatest {
			if have := last[k]; have == nil || events.Compare(want, have) != 0 {
				t.Fatalf("the last of %s is %+v, want %+v", k, have, want)
			}
		}
	})
	if refused == 0 {
		t.Error("no state was refused")
	}
}

// state draws a state of one of a few entries.
func state(t *rapid.T, base []events.Entry) events.Event {
	e := base[rapid.IntRange(0, len(base)-1).Draw(t, "entry")]
	e.Verified = rapid.Bool().Draw(t, "verified")
	revision := rapid.IntRange(1, 6).Draw(t, "revision")
	if rapid.IntRange(0, 3).Draw(t, "kind") > 0 {
		return eventstest.Listed(e, revision)
	}
	d := delisted(e)
	d.Data = events.Delisting{Revision: int64(revision), List: e.List, EntryID: e.EntryID}
	return d
}

// A message that readers reject for its headers is no state that the stream has.
func TestPublishAllOverARejectedMessage(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	e := eventstest.Listed(eventstest.Entries(1, 3)[0], 1)
	payload, err := events.Encode(e)
	require.NoError(t, err)
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: e.Data.Subject().String(), Data: payload, Header: nats.Header{"status": {"1"}}})
	require.NoError(t, err)
	sum, err := publish.New(js, publish.Config{}).PublishAll(t.Context(), []publish.Message{{Event: e}})
	require.NoError(t, err)
	require.Equal(t, 1, sum.Sent)
	require.EqualValues(t, 2, stored(t, stream))
}

// A revision beyond tomorrow is refused, unless the stream has it.
func TestPublishARevisionAheadOfTheClock(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	eventstest.Stream(t, js)
	p, now := newPublisher(js), time.Now()
	e := eventstest.Listed(eventstest.Entries(1, 3)[0], int(now.Add(25*time.Hour).UnixMilli()))
	var wrong *events.Error
	_, err := p.Publish(t.Context(), e)
	require.ErrorAs(t, err, &wrong)
	_, err = p.PublishAll(t.Context(), messages([]events.Event{e}))
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "data.revision", wrong.Field)

	eventstest.Publish(t, js, e)
	_, err = p.Publish(t.Context(), e)
	require.NoError(t, err)
	sum, err := p.PublishAll(t.Context(), messages([]events.Event{e}))
	require.NoError(t, err)
	require.Equal(t, 1, sum.Known)
	e.Data = events.Revised(e.Data, now.Add(23*time.Hour).UnixMilli())
	sum, err = p.PublishAll(t.Context(), messages([]events.Event{e}))
	require.NoError(t, err)
	require.Equal(t, 1, sum.Stale)
}

// What stands last on a subject may have any headers. A subject's name in them is not the subject.
func TestPublishAllBehindHostileHeaders(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	eventstest.Stream(t, js)
	entries := eventstest.Entries(2, 3)
	mine, other := eventstest.Listed(entries[0], 1), entries[1].Subject().String()
	payload, err := events.Encode(eventstest.Listed(entries[0], 9))
	require.NoError(t, err)
	for _, h := range []nats.Header{
		{"Status": {"503"}}, {"Status": {"204"}, "Nats-Num-Pending": {"0"}},
		{jetstream.SubjectHeader: {mine.Data.Subject().String()}, jetstream.SequenceHeader: {"x"}},
	} {
		_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: other, Header: h, Data: payload})
		require.NoError(t, err)
		_, err = newPublisher(js).PublishAll(t.Context(), messages([]events.Event{eventstest.Listed(entries[1], 1), mine}))
		require.NoError(t, err)
		mine = eventstest.Listed(entries[0], int(events.Revision(mine.Data))+1)
	}
	last, err := js.Stream(t.Context(), events.DefaultStream)
	require.NoError(t, err)
	m, err := last.GetLastMsgForSubject(t.Context(), mine.Data.Subject().String())
	require.NoError(t, err)
	e, err := events.DecodeMessage(m.Subject, m.Data)
	require.NoError(t, err)
	require.EqualValues(t, 3, events.Revision(e.Data))
}

// A batch whose acknowledgment is lost is asked for again, and stored once.
func TestPublishAllAfterALostAcknowledgment(t *testing.T) {
	t.Parallel()
	b := eventstest.Broker(t)
	stream := eventstest.Stream(t, eventstest.Connect(t, b))
	var lost atomic.Bool
	nc, err := nats.Connect(b.ClientURL(), nats.SetCustomDialer(dialer(func(read []byte) bool {
		return bytes.Contains(read, []byte(`"batch":`)) && lost.CompareAndSwap(false, true)
	})))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	evs := eventstest.Events(1500, 4)
	sum, err := newPublisher(js).PublishAll(t.Context(), messages(evs))
	require.NoError(t, err)
	require.True(t, lost.Load())
	require.Equal(t, publish.Summary{Sent: 500, Known: 1000, LastSequence: 1500}, sum)
	require.Equal(t, evs, readAll(t, stream))
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
	for name, bad := range map[string]publish.Message{
		"an invalid event":          {Event: events.Event{ID: "x"}},
		"too long with its headers": {Event: good[0].Event, Payload: padded(t, good[0].Event, events.MaxPayload)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newPublisher(js).PublishAll(t.Context(), append(good[:2:2], bad))
			require.ErrorContains(t, err, "message 2: ")
			_, isReason := errors.AsType[*events.Error](err)
			require.True(t, isReason, "%v is no *events.Error", err)
		})
	}
	require.Zero(t, stored(t, stream))
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
			size = events.MaxPayload - 512
		}
		m, err := publish.ParseMessage(padded(t, e, size))
		require.NoError(t, err)
		msgs = append(msgs, m)
	}
	p := publish.New(js, publish.Config{})
	sum, err := p.PublishAll(t.Context(), msgs)
	require.NoError(t, err)
	require.Equal(t, 10, sum.Sent)
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
	stream := eventstest.Stream(t, js, func(c *jetstream.StreamConfig) { c.MaxMsgs = 1200 })
	sum, err := newPublisher(js).PublishAll(t.Context(), messages(eventstest.Events(1500, 5)))
	require.ErrorContains(t, err, "message 1000: ")
	require.Equal(t, 1000, sum.Sent)
	require.EqualValues(t, 1000, stored(t, stream))
}

func TestPublishAllStopsWithItsContext(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	eventstest.Stream(t, js)
	ctx, cancel := context.WithCancel(t.Context())
	p := publish.New(js, publish.Config{Progress: func(publish.Summary) { cancel() }})
	sum, err := p.PublishAll(ctx, messages(eventstest.Events(1500, 1)))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1000, sum.Sent)
}

// readAll reads what the stream keeps, in order.
func readAll(t rapid.TB, s jetstream.Stream) []events.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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

// A first import asks for no state of the stream but that it is empty; what comes again is asked for.
func TestPublishAllIntoAnEmptyStreamAsksNothing(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	eventstest.Stream(t, js)
	questions, err := js.Conn().SubscribeSync("$JS.API.STREAM.MSG.GET.>")
	require.NoError(t, err)
	publisher := publish.New(js, publish.Config{})
	evs := eventstest.Events(1500, 1)

	sum, err := publisher.PublishAll(t.Context(), messages(evs))
	require.NoError(t, err)
	require.Equal(t, len(evs), sum.Sent)
	asked, _, err := questions.Pending()
	require.NoError(t, err)
	require.Zero(t, asked)

	again, err := publisher.PublishAll(t.Context(), messages(evs))
	require.NoError(t, err)
	require.Equal(t, publish.Summary{Known: len(evs), LastSequence: uint64(len(evs))}, again)
}
