package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/cmd/registry/registrytest"
	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
	"example.org/registry/httpapi/admin"
	"example.org/registry/readmodel"
)

// Flags of another run: go test ./cmd/registry -run Kill -kills 200 -kill-seed 7.
var (
	kills    = flag.Int("kills", 0, "times that the kill test kills the server; 0: 6 with the build tag nightly, else 2")
	killSeed = flag.Uint64("kill-seed", 0, "seed of the kill test; 0: RAPID_SEED, or 1")
)

// TestKill kills the real program with SIGKILL at random moments while events are published into
// it, and starts it again on the same data directory. At the end no acknowledged event is lost, and
// every answer is that of a naive model of the stream. A killed process loses
// nothing that the kernel has been given; what a power failure takes is another matter (see the
// README, durability).
func TestKill(t *testing.T) {
	t.Parallel()
	seed := cmp.Or(*killSeed, eventstest.Seed())
	t.Logf("again with: -kill-seed %d -kills %d", seed, killRounds())
	k := newKiller(t, seed, 80)
	for range killRounds() {
		k.round()
	}
	k.check()
}

func killRounds() int {
	if eventstest.FullRun() {
		return cmp.Or(*kills, 6)
	}
	return cmp.Or(*kills, 2)
}

// killer is one run of the test.
type killer struct {
	*program
	rng  *rand.Rand
	pool []events.Entry // few entries, so that events supersede each other

	acked      []sent
	checkpoint uint64 // the highest ever seen over HTTP
	serial     int
}

// sent is an acknowledged event.
type sent struct {
	seq     uint64 // 0 where it is not told, for a member of a batch
	id      string
	subject string
}

// newKiller keeps all messages, so that the stream itself can be compared with what was
// acknowledged.
func newKiller(t *testing.T, seed uint64, entries int) *killer {
	return &killer{program: newProgram(t, "--stream-history=0"), rng: rand.New(rand.NewPCG(seed, 1)), pool: eventstest.Entries(entries, seed)}
}

// round starts the server, publishes, and kills it: now and then before it is ready.
func (k *killer) round() {
	if k.rng.IntN(5) == 0 {
		k.startUntil("listening")
		k.rest(30)
		k.End(os.Kill)
		return
	}
	k.start()
	k.notBackwards()
	published := make(chan []sent)
	events, seed := k.events(20_000), k.rng.Uint64()
	go func() { published <- publishUntilDead(k.NATS, events, seed) }()
	k.rest(600)
	k.End(os.Kill)
	k.acked = append(k.acked, <-published...)
}

// feed publishes n events, as many as the server takes.
func (k *killer) feed(n int) {
	k.acked = append(k.acked, publishUntilDead(k.NATS, k.events(n), k.rng.Uint64())...)
}

// rest lets up to ms milliseconds pass: the moment of the kill is what is random here, not
// something that is waited for.
func (k *killer) rest(ms int) {
	<-time.After(time.Duration(k.rng.IntN(ms*1000)) * time.Microsecond)
}

// notBackwards compares the checkpoint after a restart with what readers had seen: it may only
// have grown, since memory is never ahead of the stream.
func (k *killer) notBackwards() {
	k.t.Helper()
	now := k.projection().Checkpoint
	if now < k.checkpoint {
		k.t.Errorf("checkpoint %d after %d", now, k.checkpoint)
	}
	k.checkpoint = now
}

// events makes the next n events: mostly new states of the pool's entries and view totals,
// some delistings, each with an id of its own.
func (k *killer) events(n int) []events.Event {
	out := make([]events.Event, n)
	for i := range out {
		k.serial++
		entry := k.pool[k.rng.IntN(len(k.pool))]
		e := events.Event{ID: fmt.Sprintf("kill-%d", k.serial), Source: "/kill"}
		switch k.rng.IntN(10) {
		case 0, 1, 2:
			e.Type = events.TypeViewsCounted
			e.Data = events.Views{Revision: 1, List: entry.List, EntryID: entry.EntryID, Views: k.rng.Int64N(1000)}
		case 3:
			e.Type = events.TypeDelisted
			e.Data = events.Delisting{Revision: 1, List: entry.List, EntryID: entry.EntryID}
		default:
			entry.Name = fmt.Sprintf("%s %d", entry.Name, k.serial)
			e.Type = events.TypeAmended
			e.Data = entry
		}
		e.Data = events.Revised(e.Data, int64(k.serial))
		out[i] = e
	}
	return out
}

// publishUntilDead publishes one by one and in batches until the broker is gone, and returns
// what was acknowledged.
func publishUntilDead(url string, all []events.Event, seed uint64) []sent {
	rng := rand.New(rand.NewPCG(seed, 2))
	nc, err := nats.Connect(url, nats.NoReconnect())
	if err != nil {
		return nil // killed before
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	nc.SetClosedHandler(func(*nats.Conn) { cancel() })
	publisher := publish.New(js, publish.Config{Timeout: 2 * time.Second})
	var acked []sent
	for len(all) > 0 {
		n := min(len(all), []int{1, 1, 1, 20, 300}[rng.IntN(5)])
		now, err := publishSome(ctx, publisher, all[:n])
		acked = append(acked, now...)
		if err != nil {
			return acked
		}
		all = all[n:]
	}
	return acked
}

// publishSome returns what is certain to be stored; of a batch only if all of it is.
func publishSome(ctx context.Context, p *publish.Publisher, batch []events.Event) ([]sent, error) {
	if len(batch) == 1 {
		ack, err := p.Publish(ctx, batch[0])
		if err != nil {
			return nil, err
		}
		return []sent{{ack.Sequence, batch[0].ID, batch[0].Data.Subject().String()}}, nil
	}
	messages := make([]publish.Message, len(batch))
	for i, e := range batch {
		messages[i] = publish.Message{Event: e}
	}
	if _, err := p.PublishAll(ctx, messages); err != nil {
		return nil, err
	}
	acked := make([]sent, len(batch))
	for i, e := range batch {
		acked[i] = sent{0, e.ID, e.Data.Subject().String()}
	}
	return acked, nil
}

// check starts the server a last time and compares.
func (k *killer) check() {
	k.start()
	k.notBackwards()
	stream := k.right()
	k.stop()
	if len(k.acked) == 0 && killRounds() > 3 {
		k.t.Error("nothing was ever acknowledged: the test has tested nothing")
	}
	k.t.Logf("%d events acknowledged, %d in the stream", len(k.acked), len(stream))
}

// stored is a message of the stream.
type stored struct {
	seq   uint64
	event events.Event
}

// readStream reads the whole stream, up to the end that it has now. The server erases the messages
// before a tombstone meanwhile; a message follows the last one if that is gone.
func (k *killer) readStream() (all []stored) {
	k.t.Helper()
	js := k.stream()
	defer js.Conn().Close()
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	stream, err := js.Stream(ctx, events.DefaultStream)
	require.NoError(k.t, err)
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		return nil
	}

	consumer, err := js.OrderedConsumer(ctx, events.DefaultStream, jetstream.OrderedConsumerConfig{})
	require.NoError(k.t, err)
	messages, err := consumer.Messages()
	require.NoError(k.t, err)
	defer messages.Stop()
	for seq := uint64(0); seq < state.LastSeq; {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		require.NoError(k.t, err)
		meta, err := msg.Metadata()
		require.NoError(k.t, err)
		seq = meta.Sequence.Stream
		e, err := events.DecodeMessage(msg.Subject(), msg.Data())
		require.NoError(k.t, err)
		all = append(all, stored{seq, e})
	}
	return all
}

// nothingLost looks for every acknowledged event. One that is not there must have been rolled up
// by a later tombstone of its subject.
func (k *killer) nothingLost(stream []stored) {
	k.t.Helper()
	there := map[string]uint64{}      // sequence by event id
	tombstones := map[string]uint64{} // sequence by subject
	for _, m := range stream {
		there[m.event.ID] = m.seq
		if m.event.Type.Removes() {
			tombstones[m.event.Data.Subject().String()] = m.seq
		}
	}
	for _, s := range k.acked {
		seq, found := there[s.id]
		if found && s.seq != 0 && s.seq != seq {
			k.t.Fatalf("event %s was acknowledged at %d and is at %d", s.id, s.seq, seq)
		}
		if !found && tombstones[s.subject] <= s.seq {
			k.t.Fatalf("event %s on %s, acknowledged at %d, is lost", s.id, s.subject, s.seq)
		}
	}
}

// answersAreRight compares the lists, and a check of everybody, with the reference model of a stream.
func (k *killer) answersAreRight(stream []stored) {
	k.t.Helper()
	twin := eventstest.NewTwin()
	for _, m := range stream {
		twin.Apply(m.event.Data)
	}
	if err := registrytest.Same(k.t.Context(), k.HTTP, twin, k.pool); err != nil {
		k.t.Error(err)
	}
}

// right compares the running server with the stream.
func (k *killer) right() (stream []stored) {
	k.t.Helper()
	stream = k.readStream()
	k.nothingLost(stream)
	k.digestIsReplays(stream)
	k.answersAreRight(stream)
	return stream
}

// digestIsReplays compares the server's digest with that of the stream applied to an empty model,
// once the server has come as far.
func (k *killer) digestIsReplays(stream []stored) {
	k.t.Helper()
	model, renderer := readmodel.New(), readmodel.NewRenderer()
	var last uint64
	for _, m := range stream {
		last = m.seq
		model.Apply([]readmodel.Record{renderer.Render(m.seq, m.event.Data)}, m.seq)
	}
	var now admin.Projection
	k.until("the server is at the stream's end", func() bool {
		now = k.projection()
		return now.Checkpoint >= last && now.Lag == 0
	})
	if want := model.Digest().String(); now.Digest != want {
		k.t.Errorf("digest %s at %d, a replay up to %d has %s", now.Digest, now.Checkpoint, last, want)
	}
	k.checkpoint = max(k.checkpoint, now.Checkpoint)
}

// saved waits until all that is applied is on disk and indexed, and nothing is wrong any more.
func (k *killer) saved() {
	k.t.Helper()
	_, err := k.WaitSettled(k.t.Context(), 0)
	require.NoError(k.t, err)
}

func (k *killer) storePath() string { return filepath.Join(k.data, "registry.db") }
