package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
	"example.org/registry/events/publish"
	"example.org/registry/projector/lineage"
)

// broker is a real one, its directory, and a connection past the wire.
type broker struct {
	dir  string
	kept int // messages of a subject

	server *server.Server
	js     jetstream.JetStream
}

func (w *world) startBroker() {
	s, err := server.NewServer(&server.Options{
		DontListen: true, NoSigs: true, NoLog: true, ServerName: "sim", JetStream: true, DisableJetStreamBanner: true,
		StoreDir: w.broker.dir, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 1 << 30,
	})
	w.must(err)
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		w.t.Fatal("the broker does not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(0))
	w.must(err)
	js, err := jetstream.New(nc)
	w.must(err)
	w.mu.Lock()
	w.broker.server, w.broker.js = s, js
	w.mu.Unlock()
	w.wire.setDown(false)
}

func (w *world) stopBroker() {
	w.wire.setDown(true) // no handshake with a broker that is about to end
	synctest.Wait()
	w.broker.js.Conn().Close()
	w.broker.server.Shutdown()
	w.broker.server.WaitForShutdown()
}

func (w *world) restartBroker() {
	w.stopBroker()
	time.Sleep(w.between(time.Millisecond, 3*time.Second))
	w.startBroker()
}

func (w *world) dial() (net.Conn, error) { return w.broker.server.InProcessConn() }

// stream asks past the wire.
func (w *world) stream() leader.Stream {
	return leader.Stream{JS: w.broker.js, Name: events.DefaultStream}
}

// makeStream makes the event stream, empty.
func (w *world) makeStream(epoch string) {
	w.broker.kept = 2 + w.rng.IntN(4)
	_, err := eventstest.Create(context.Background(), w.broker.js, publish.StreamConfig(events.DefaultStream, 1, w.broker.kept, epoch))
	w.must(err)
}

// random is one message on its way to the stream: mostly an event, now and then poison.
func (w *world) random() (m *nats.Msg, data events.Data) {
	lists := events.Lists()
	list, id := lists[w.rng.IntN(len(lists))], fmt.Sprint("e", w.rng.IntN(w.keys))
	switch kind := w.rng.IntN(20); {
	case kind < 9:
		data = w.entry(list, id)
	case kind < 13:
		data = events.Delisting{Revision: 1, List: list, EntryID: id}
	case kind < 16:
		data = events.Views{Revision: 1, List: list, EntryID: id, Views: int64(w.count)}
	case kind < 17:
		data = events.Donation{Revision: 1, DonationID: id, Status: events.DonationStatuses()[0], Amount: "1", Currency: "EUR", CreatedAt: time.Now(), UpdatedAt: time.Now()}
	case kind < 18:
		data = events.DonationRemoval{Revision: 1, DonationID: id}
	case kind < 19:
		return w.message(events.Subject{Kind: events.KindEntry, List: list, ID: id}.String(), []byte(`{"specversion":"1.0"}`)), nil
	default:
		return w.message("registry.unknown."+id, []byte("{}")), nil
	}
	return w.event(data), data
}

func (w *world) entry(list events.List, id string) events.Entry {
	return events.Entry{Revision: 1, List: list, EntryID: id, ChatID: "9", Name: fmt.Sprint("N", w.count), Reason: "r", Verified: true, ReportID: "R", ReportedAt: time.Now()}
}

func (w *world) message(subject string, payload []byte) *nats.Msg {
	w.count++
	m := &nats.Msg{Subject: subject, Data: payload, Header: nats.Header{}}
	if w.rng.IntN(3) > 0 {
		m.Header.Set(jetstream.MsgIDHeader, fmt.Sprint("id", w.count))
	}
	return m
}

func (w *world) event(data events.Data) *nats.Msg {
	e := events.StateEvent(events.Revised(data, int64(w.count+1)))
	e.ID = fmt.Sprint("id", w.count+1)
	b, err := events.Encode(e)
	w.must(err)
	return w.message(data.Subject().String(), b)
}

// publish publishes a random message and notes it.
func (w *world) publish() {
	m, data := w.random()
	w.send(m, data)
}

// send publishes m and notes it once it is acknowledged.
func (w *world) send(m *nats.Msg, data events.Data) uint64 {
	ack, err := w.broker.js.PublishMsg(context.Background(), m)
	w.must(err)
	w.absorb(ack.Sequence - 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored[ack.Sequence] = time.Now()
	if data == nil {
		w.twin.reject(m.Subject, ack.Sequence, w.broker.kept)
		return ack.Sequence
	}
	d, err := events.DecodeMessage(m.Subject, m.Data)
	w.must(err)
	r := w.render.Render(ack.Sequence, d.Data)
	if r.Subject.Kind == events.KindEntry {
		w.ledger.listed(r.Subject, ack.Sequence, r.Removed)
	}
	w.twin.apply(m.Subject, r)
	return ack.Sequence
}

// absorb is R15: what others than send have published, up to the sequence end, is what the server has
// put back.
func (w *world) absorb(end uint64) {
	for next := w.twin.end + 1; next <= end; {
		m, err := w.stream().NextMessage(context.Background(), next, ">")
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence > end {
			break
		}
		w.must(err)
		next = m.Sequence + 1
		if m.Subject == events.HistorySubject {
			continue
		}
		d, err := events.DecodeMessage(m.Subject, m.Data)
		if err != nil {
			w.violation("R15: the server has published %s at %d: %v", m.Subject, m.Sequence, err)
			break
		}
		r, was := w.render.Render(m.Sequence, d.Data), w.twin.subjects[m.Subject]
		if !was.loose && (was.after == 0 || r.Digest() != was.record.Digest()) {
			w.violation("R15: put back at %d is another state of %s than that of %d", m.Sequence, m.Subject, was.valid)
		}
		w.tally.hit("state put back")
		if d := w.ledger[r.Subject]; d != nil && !d.seen && was.loose && !r.Removed {
			delete(w.ledger, r.Subject) // displaced before the server came
		}
		w.mu.Lock()
		w.twin.apply(m.Subject, r)
		w.mu.Unlock()
	}
	w.mu.Lock()
	w.twin.end = max(w.twin.end, end)
	w.mu.Unlock()
}

// absorbAll is absorb up to the stream's end. Nothing is known while it cannot be asked.
func (w *world) absorbAll() {
	if info, err := w.stream().Info(context.Background()); err == nil {
		w.absorb(info.State.LastSeq)
	}
}

// purge has an operator erase a subject; of the last message, where tail is set.
func (w *world) purge(tail bool) {
	w.absorbAll()
	names := w.twin.names()
	if len(names) == 0 {
		return
	}
	name := names[w.rng.IntN(len(names))]
	if tail {
		m, err := w.stream().Message(context.Background(), w.twin.end)
		if err != nil {
			return // purged already
		}
		name = m.Subject
	}
	s, err := w.broker.js.Stream(context.Background(), events.DefaultStream)
	w.must(err)
	w.must(s.Purge(context.Background(), jetstream.WithPurgeSubject(name)))
	w.twin.purge(name)
	w.mu.Lock()
	clear(w.stored) // what is erased is passed over
	w.mu.Unlock()
	w.tally.hit("subject purged")
	if tail {
		w.tally.hit("tail purged")
	}
	w.say("purged %s", name)
}

// replay makes the twin again from what the stream has.
func (w *world) replay() *twin {
	t := newTwin()
	ctx, s := context.Background(), w.stream()
	for next := uint64(1); ; {
		m, err := s.NextMessage(ctx, next, ">")
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		w.must(err)
		next = m.Sequence + 1
		d, err := events.DecodeMessage(m.Subject, m.Data)
		switch {
		case m.Subject == events.HistorySubject:
		case err != nil:
			t.reject(m.Subject, m.Sequence, w.broker.kept+1) // the stream still has what is before it
		default:
			r := w.render.Render(m.Sequence, d.Data)
			t.apply(m.Subject, r)
		}
	}
	info, err := s.Info(ctx)
	w.must(err)
	t.end = info.State.LastSeq
	return t
}

func (w *world) epoch() string {
	info, err := w.stream().Info(context.Background())
	w.must(err)
	return lineage.Of(info).StreamEpoch
}

func (w *world) storePath() string { return filepath.Join(w.dir, "registry.db") }
