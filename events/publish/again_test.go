package publish_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// restartable is a broker with one stream, over restarts.
type restartable struct {
	t      *testing.T
	dir    string
	b      *broker.Broker
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	name   string // of the stream
	made   int    // streams so far
}

func newRestartable(t *testing.T, mutate ...func(*jetstream.StreamConfig)) *restartable {
	t.Helper()
	r := &restartable{t: t, dir: filepath.Join(t.TempDir(), "broker")}
	r.start()
	t.Cleanup(r.stop)
	r.recreate(mutate...)
	return r
}

func (r *restartable) start() {
	r.t.Helper()
	var err error
	if r.b, err = broker.Start(broker.Config{StoreDir: r.dir, Addr: "127.0.0.1:0", UnsafeNoSync: true}); err != nil {
		r.t.Fatal(err)
	}
	if r.nc, err = r.b.Connect(); err != nil {
		r.t.Fatal(err)
	}
	if r.js, err = jetstream.New(r.nc); err != nil {
		r.t.Fatal(err)
	}
}

func (r *restartable) stop() { r.nc.Close(); r.b.Shutdown() }

// restart makes the broker forget every id whose message is not in the stream any more. What lies
// before a tombstone is erased first, as the registry does.
func (r *restartable) restart() {
	r.t.Helper()
	r.erase()
	r.stop()
	r.start()
	var err error
	if r.stream, err = r.js.Stream(context.Background(), r.name); err != nil {
		r.t.Fatal(err)
	}
}

func (r *restartable) erase() {
	r.t.Helper()
	info, err := r.stream.Info(context.Background())
	require.NoError(r.t, err)
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		msg, err := r.stream.GetMsg(context.Background(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		require.NoError(r.t, err)
		if e, err := events.DecodeMessage(msg.Subject, msg.Data); err != nil || !e.Type.Removes() {
			continue
		}
		err = r.stream.Purge(context.Background(), jetstream.WithPurgeSubject(msg.Subject), jetstream.WithPurgeSequence(seq))
		require.NoError(r.t, err)
	}
}

// recreate makes the stream, new and under a new name: the broker may still be removing the
// directory of the old one.
func (r *restartable) recreate(mutate ...func(*jetstream.StreamConfig)) {
	r.t.Helper()
	if r.stream != nil {
		require.NoError(r.t, r.js.DeleteStream(context.Background(), r.name))
	}
	r.made++
	r.name = fmt.Sprint(events.DefaultStream, r.made)
	cfg := publish.StreamConfig(r.name, 1, events.DefaultHistory, events.NewEpoch())
	for _, m := range mutate {
		m(&cfg)
	}
	var err error
	for range 100 {
		if r.stream, err = r.js.CreateStream(context.Background(), cfg); !storeBusy(err) {
			break
		}
	}
	require.NoError(r.t, err)
}

// storeBusy is the broker's answer while it is still removing what was there.
func storeBusy(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == 10049
}

// publish publishes the messages as one run, in pieces of a size as a file is.
func (r *restartable) publish(t rapid.TB, evs []events.Event, piece, batch int) publish.Summary {
	t.Helper()
	run := publish.New(r.js, publish.Config{BatchSize: batch}).NewRun()
	var total publish.Summary
	for all := messages(evs); len(all) > 0; {
		n := min(piece, len(all))
		sum, err := run.PublishAll(context.Background(), all[:n])
		require.NoError(t, err)
		total.Sent, total.Duplicates = total.Sent+sum.Sent, total.Duplicates+sum.Duplicates
		all = all[n:]
	}
	if total.Sent+total.Duplicates != len(evs) {
		t.Fatalf("%+v of %d messages", total, len(evs))
	}
	return total
}

// lastAreThoseOf compares the stream's last message of every subject with that of evs. The
// payload must be it to the byte, so the id in it too.
func (r *restartable) lastAreThoseOf(t rapid.TB, evs []events.Event) {
	t.Helper()
	last := map[string]events.Event{}
	for _, e := range evs {
		last[e.Data.Subject().String()] = e
	}
	for subject, want := range last {
		msg, err := r.stream.GetLastMsgForSubject(context.Background(), subject)
		if err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
		if got, err := events.DecodeMessage(subject, msg.Data); err != nil || got != want {
			t.Fatalf("the last of %s is %s, %v; want %s", subject, got.ID, err, want.ID)
		}
		if id := msg.Header.Get(jetstream.MsgIDHeader); id != "" && id != want.ID {
			t.Fatalf("the last of %s has the message id %q, want %q or none", subject, id, want.ID)
		}
	}
}

// states are n states of one entry, the last a tombstone if so wished.
func states(e events.Entry, n int, removed bool) []events.Event {
	out := make([]events.Event, n)
	for i := range out {
		out[i] = eventstest.Listed(e, i)
	}
	if removed {
		out[n-1] = delisted(e)
	}
	return out
}

// Whichever acknowledgment is lost, of the old state, of the duplicate or of the state stored once
// more, the order holds.
func TestPublishAgainWithALostAcknowledgement(t *testing.T) {
	all := states(eventstest.Entries(1, 7)[0], 2, true)
	for lose := range int32(3) {
		r := newRestartable(t)
		r.publish(t, all, 1000, 1000)
		r.restart()
		var acks atomic.Int32
		nc, err := nats.Connect(r.b.ClientURL(), nats.SetCustomDialer(dialer(func(read []byte) bool {
			return bytes.Contains(read, []byte(`"seq":`)) && acks.Add(1) == lose+1
		})))
		require.NoError(t, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		p := publish.New(js, publish.Config{Timeout: 300 * time.Millisecond})
		sum, err := p.PublishAll(t.Context(), messages(all))
		if err != nil || sum.Sent+sum.Duplicates != 2 || acks.Load() != 4 {
			t.Errorf("acknowledgement %d lost: %+v, %v, %d acknowledgements", lose, sum, err, acks.Load())
		}
		r.lastAreThoseOf(t, all)
	}
}

// Any sequence, published in any parts, the broker restarted between any of them, and then as a
// whole: the stream ends with the sequence's last state of every subject.
func TestPublishAgainWhateverWasThere(t *testing.T) {
	t.Parallel()
	r := newRestartable(t)
	base := eventstest.Entries(12, 9)
	serial, stored, known := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		serial++
		history := rapid.SampledFrom([]int64{1, 2, 5, -1}).Draw(t, "history")
		atomically := rapid.Bool().Draw(t, "atomically")
		r.recreate(func(c *jetstream.StreamConfig) {
			c.MaxMsgsPerSubject, c.AllowAtomicPublish = history, atomically
		})
		all := sequence(t, base, fmt.Sprint("s", serial))
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
			to := rapid.IntRange(from+1, len(all)).Draw(t, "to")
			r.publish(t, all[from:to], rapid.IntRange(1, 60).Draw(t, "piece"), rapid.IntRange(1, 40).Draw(t, "batch"))
			if rapid.Bool().Draw(t, "restart") {
				r.restart()
			}
		}
		sum := r.publish(t, all, rapid.IntRange(1, 60).Draw(t, "piece"), rapid.IntRange(1, 40).Draw(t, "batch"))
		stored, known = stored+sum.Sent, known+sum.Duplicates
		r.lastAreThoseOf(t, all)
	})
	if stored == 0 || known == 0 {
		t.Errorf("%d stored, %d known: one of the two was never tried", stored, known)
	}
}

// sequence draws states and tombstones of a few entries.
func sequence(t *rapid.T, base []events.Entry, name string) []events.Event {
	all := make([]events.Event, rapid.IntRange(2, 80).Draw(t, "events"))
	for i := range all {
		e := base[rapid.IntRange(0, len(base)-1).Draw(t, "entry")]
		all[i] = eventstest.Listed(e, i)
		if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
			all[i] = delisted(e)
		}
		all[i].ID = fmt.Sprintf("%s.%d", name, i)
	}
	return all
}
