package projector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/stream"
)

// put publishes a message as it is, and returns its sequence. It waits for the stream, which a server may be creating.
func (w *world) put(m *nats.Msg) uint64 {
	w.Helper()
	const wait = 20 * time.Millisecond
	ack, err := w.js.PublishMsg(w.Context(), m, jetstream.WithRetryWait(wait), jetstream.WithRetryAttempts(int(patience/wait)))
	require.NoError(w, err)
	return ack.Sequence
}

// copies returns the copies of rejected events by sequence, once there are n.
func (w *world) copies(n int) map[uint64]Rejection {
	w.Helper()
	all := map[uint64]Rejection{}
	w.await(fmt.Sprint(n, " copies"), func() bool {
		listed, err := ListRejected(w.Context(), w.js)
		require.NoError(w, err)
		for _, r := range listed {
			all[r.Sequence] = r
		}
		return len(listed) >= n
	})
	return all
}

// The corpus of poison events through the real path: each is rejected with its reason or applied,
// exactly as the contract has it, and another server that reads the same has the same digest.
func TestPoisonCorpus(t *testing.T) {
	corpus, err := eventstest.Poisons(filepath.Join("..", "events", "testdata", "poison.txt"))
	require.NoError(t, err)
	w := newBroker(t, 1)
	w.tune = func(c *Config) { c.History = 0; c.MayWrite = nil }
	w.start()
	w.settle(w.server)
	address, err := url.Parse(w.broker.ClientURL())
	require.NoError(t, err)
	raw := dialRaw(t, address.Host)
	problems := map[uint64]string{} // by sequence
	for i, p := range corpus {
		payload := p.Payload
		if p.Problem == "" { // each state is newer than those before it
			payload = strings.Replace(payload, `"revision":1`, fmt.Sprintf(`"revision":%d`, i+2), 1)
		}
		if sequence := raw.publish(p.Subject, p.Headers, []byte(payload)); p.Problem != "" {
			problems[sequence] = p.Problem
		}
	}
	w.send(listed(events.Servers, 20)...)
	w.settle(w.server)

	copies := w.copies(len(problems))
	require.Len(t, copies, len(problems))
	for sequence, problem := range problems {
		r := copies[sequence]
		require.Contains(t, r.Reason, problem, "sequence %d", sequence)
	}
	w.awaitProgress(w.server, "the copies are counted", func(p Progress) bool { return p.Rejected == uint64(len(problems)) })
	require.EqualValues(t, len(problems), w.server.Progress().RejectedHere)

	other := w.open(filepath.Join(w.dir, "other.db"), false)
	defer w.stop(other, true)
	w.settle(other)
	require.Equal(t, w.server.cfg.Model.View().Digest(), other.cfg.Model.View().Digest())
}

// delivery is a delivery of a consumer.
type delivery struct {
	jetstream.Msg
	number uint64
}

func (d delivery) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: jetstream.SequencePair{Consumer: d.number, Stream: 10 + d.number}}, nil
}
func (delivery) Subject() string      { return "" }
func (delivery) Headers() nats.Header { return nil }
func (delivery) Data() []byte         { return nil }

// Where the client library has kept a delivery, the batch ends before it.
func TestMissingDelivery(t *testing.T) {
	c := &consumer{messages: make(chan jetstream.Msg, 2)}
	c.messages <- delivery{number: 2}
	c.messages <- delivery{number: 4}
	batch, err := c.take(delivery{number: 1})
	require.ErrorContains(t, err, "missing")
	require.Len(t, batch, 2)
	require.EqualValues(t, 12, batch[1].Sequence)
}

// A copy has the event's place, reason and time, and its payload up to a bound. What loses against a known
// state is copied where the backend has made a mistake, and counted where it has not.
func TestRejections(t *testing.T) {
	began := time.Now()
	w := newWorld(t, 1)
	shown := entry(events.Scammers, "a", 2000, true)
	w.send(shown)
	w.settle(w.server)
	tie := shown
	for tie.Name = "x"; events.Compare(tie, shown) > 0; tie.Name += "x" {
	}
	long := w.put(&nats.Msg{Subject: "registry.donations.secret", Data: bytes.Repeat([]byte("x"), events.MaxRejected+1)})
	conflict := w.put(messageOf(t, tie))
	unheeded := w.put(messageOf(t, delisted(events.Scammers, "a", 1000)))
	w.put(messageOf(t, shown)) // a repetition
	stale := w.put(messageOf(t, entry(events.Scammers, "a", 1500, true)))
	w.settle(w.server)

	copies := w.copies(3)
	require.Equal(t, "registry.donations.secret", copies[long].Subject)
	require.True(t, copies[long].Truncated)
	require.Equal(t, "revision 2000 has another state", copies[conflict].Reason)
	require.Equal(t, "known revision 2000", copies[unheeded].Reason)
	require.WithinRange(t, copies[unheeded].Time, began, time.Now())
	require.NotContains(t, copies, stale)
	p := w.server.Progress()
	require.EqualValues(t, []uint64{3, 1, 1}, []uint64{p.RejectedHere, p.Superseded, p.Unheeded})
	w.requireTruth(w.server, "after mistakes")
	w.requireWholeStream() // the latest state is published again
	w.awaitProgress(w.server, "counted", func(p Progress) bool { return p.RestoredStates > 0 })

	// Reading the stream again copies no mistake that it does not hold.
	w.recover(w.server)
	require.Len(t, w.copies(3), 3)
}

// No checkpoint is saved beyond a rejected event that has not been copied, and what waits is bounded.
func TestNothingIsSavedBeforeTheCopy(t *testing.T) {
	w := serving(t)
	saved := w.server.Progress().Saved
	taken, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "TAKEN", Subjects: []string{events.RejectedPrefix + ">"}})
	require.NoError(t, err)
	last := w.put(&nats.Msg{Subject: "registry.donations.broken", Data: []byte("{")})
	w.awaitProgress(w.server, "the copy fails", func(p Progress) bool { return strings.Contains(p.LastError, "cannot be copied") })
	require.GreaterOrEqual(t, w.server.Progress().Checkpoint, last)
	require.Equal(t, saved, w.server.store.Meta().Sequence)
	w.restart(true)
	w.awaitProgress(w.server, "it is read again, and the copy fails", func(p Progress) bool { return strings.Contains(p.LastError, "cannot be copied") })

	require.NoError(t, w.js.DeleteStream(t.Context(), taken.CachedInfo().Config.Name))
	w.copies(1)
	w.settle(w.server)
	w.awaitProgress(w.server, "nothing is wrong", func(p Progress) bool { return p.LastError == "" })
}

// Logs name no donation.
func TestRejectionsInTheLog(t *testing.T) {
	w := newBroker(t, 1)
	log := &buffer{}
	w.log = slog.New(slog.NewTextHandler(log, nil))
	w.start()
	w.put(&nats.Msg{Subject: "registry.donations.secret", Data: []byte(`{"id":"secret"`)})
	w.settle(w.server)
	w.copies(1)
	require.Contains(t, log.String(), "event rejected")
	require.NotContains(t, log.String(), "secret")
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// The service says of each event what the projector makes of it, with its reason, and publishes nothing.
func TestValidation(t *testing.T) {
	w := newWorld(t, 1)
	nc := w.js.Conn()
	stop, err := ServeValidation(nc, w.server.Known, w.log)
	require.NoError(t, err)
	defer stop()
	require.NoError(t, nc.Flush())
	ask := func(payload []byte, header nats.Header) (v validation) {
		t.Helper()
		reply, err := nc.RequestMsg(&nats.Msg{Subject: events.ValidateSubject, Data: payload, Header: header}, patience)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(reply.Data, &v))
		return v
	}
	good := entry(events.Scammers, "a", 2000, true)
	message := messageOf(t, good)
	subject := nats.Header{events.HeaderSubject: {message.Subject}}
	require.Equal(t, validation{Valid: true, Subject: message.Subject}, ask(message.Data, nil))
	w.send(good)
	w.settle(w.server)
	require.Equal(t, validation{Valid: true, Subject: message.Subject, Known: 2000}, ask(message.Data, subject))
	require.Equal(t, validation{Valid: true, Subject: message.Subject, Known: 2000, Stale: true}, ask(messageOf(t, entry(events.Scammers, "a", 1000, true)).Data, nil))
	before := w.last()

	binary := nats.Header{"ce-specversion": {"1.0"}, "Content-Type": {"application/json"}}
	for name, m := range map[string]*nats.Msg{
		"no JSON":         {Subject: message.Subject, Data: []byte("{")},
		"another subject": {Subject: "registry.servers.nobody", Data: message.Data},
		"unknown subject": {Subject: "registry.unknown.a.b", Data: message.Data},
		"binary mode":     {Subject: message.Subject, Data: []byte("{}"), Header: binary},
	} {
		header := nats.Header{events.HeaderSubject: {m.Subject}}
		maps.Copy(header, m.Header)
		want := (&decoder{log: w.log}).decode(&stream.Message{Subject: m.Subject, Data: m.Data, Header: m.Header}).err
		require.Error(t, want, name)
		require.Equal(t, validation{Reason: want.Error()}, ask(m.Data, header), name)
	}
	require.Contains(t, ask([]byte("{}"), binary).Reason, "send structured mode")
	ahead := messageOf(t, entry(events.Scammers, "a", time.Now().Add(25*time.Hour).UnixMilli(), true))
	require.Contains(t, ask(ahead.Data, nil).Reason, "more than a day ahead")
	require.Equal(t, before, w.last())
}

// FuzzParseRejection: whatever is in the stream of copies, listing it ends in a rejection or nothing, and what
// is copied is read as it was.
func FuzzParseRejection(f *testing.F) {
	f.Add("E1", uint64(7), "registry.donations.x", "data: missing", []byte("{}"))
	f.Add("no epoch.>", uint64(0), "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, epoch string, sequence uint64, subject, reason string, data []byte) {
		at := time.UnixMilli(1_700_000_000_000).UTC()
		r := rejection{stream.Message{Subject: subject, Sequence: sequence, Time: at, Data: data}, reason}
		m := newCopy(epoch, r)
		got, ok := parseRejection(&stream.Message{Subject: m.Subject, Header: m.Header, Data: m.Data})
		want := Rejection{Sequence: sequence, Subject: subject, Reason: reason, Time: at, Truncated: len(data) > events.MaxRejected}
		if !ok || got != want || len(m.Data) > events.MaxRejected {
			t.Errorf("%+v, %v, want %+v", got, ok, want)
		}
		_, _ = parseRejection(&stream.Message{Subject: subject, Data: data})
	})
}
