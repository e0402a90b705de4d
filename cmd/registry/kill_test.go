package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// The flags of a longer run: go test ./cmd/registry -run Kill -kills 200 -kill-seed 7.
var (
	kills    = flag.Int("kills", 6, "times that the kill test kills the server")
	killSeed = flag.Uint64("kill-seed", 0, "seed of the kill test; 0: a new one")
)

// TestKill kills the real program with SIGKILL at random moments while events are published
// into it, and starts it again on the same data directory. At the end no acknowledged event
// is lost, and every answer is that of a naive model of the stream (promises 1, 3 and 4). A killed
// process loses nothing that the kernel has been given; what a power failure takes is another matter
// (see the README, durability).
func TestKill(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again with: -kill-seed %d -kills %d", seed, *kills)
	k := &killer{t: t, rng: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), pool: eventstest.Entries(80, seed)}
	for round := range *kills {
		k.round(round)
	}
	k.check()
}

// killer is one run of the test.
type killer struct {
	t    *testing.T
	rng  *rand.Rand
	dir  string
	pool []events.Entry // few entries, so that events supersede each other

	env      []string // of the server, beside the test's own
	poisoned bool     // the stream may hold events that cannot be decoded
	poison   int      // as many as the stream was last seen to hold

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

// start runs the server on the test's data directory. All messages are kept, so that the
// stream itself can be compared with what was acknowledged.
func (k *killer) start(round int) *child {
	k.t.Helper()
	binary, err := os.Executable()
	if err != nil {
		k.t.Fatal(err)
	}
	log := filepath.Join(k.dir, fmt.Sprintf("server-%d.log", round))
	c, err := startChild(binary, k.dir, log, append(os.Environ(), append(k.env, "REGISTRY_DATA_DIR="+filepath.Join(k.dir, "data"))...), "--stream-history=0")
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { c.end(os.Kill) })
	return c
}

// ready waits for the ready line.
func (k *killer) ready(c *child) logLine {
	k.t.Helper()
	line, ok := c.await("ready")
	if !ok {
		status := c.end(os.Kill)
		text, _ := os.ReadFile(c.log)
		k.t.Fatalf("server did not become ready (status %d): %s", status, text)
	}
	return line
}

// round starts the server, publishes, and kills it: now and then before it is ready.
func (k *killer) round(round int) {
	c := k.start(round)
	if k.rng.IntN(5) == 0 {
		if _, ok := c.await("listening"); !ok {
			k.t.Fatal("server ended by itself")
		}
		k.rest(30)
		c.end(syscall.SIGKILL)
		return
	}
	line := k.ready(c)
	k.notBackwards(line)
	published := make(chan []sent)
	events, seed := k.events(20_000), k.rng.Uint64()
	go func() { published <- publishUntilDead(line.NATS, events, seed) }()
	k.rest(600)
	c.end(syscall.SIGKILL)
	k.acked = append(k.acked, <-published...)
}

// rest lets up to ms milliseconds pass: the moment of the kill is what is random here, not
// something that is waited for.
func (k *killer) rest(ms int) {
	<-time.After(time.Duration(k.rng.IntN(ms*1000)) * time.Microsecond)
}

// notBackwards compares the checkpoint after a restart with what readers had seen: it may only
// have grown, since memory is never ahead of the stream.
func (k *killer) notBackwards(line logLine) {
	k.t.Helper()
	var doc struct{ Checkpoint uint64 }
	k.get("http://"+line.Admin+"/projection", &doc)
	if doc.Checkpoint < k.checkpoint {
		k.t.Errorf("checkpoint %d after %d", doc.Checkpoint, k.checkpoint)
	}
	k.checkpoint = doc.Checkpoint
}

// events makes the next n events: mostly new states of the pool's entries and view totals,
// some delistings, each with an id of its own.
func (k *killer) events(n int) []events.Event {
	out := make([]events.Event, n)
	for i := range out {
		k.serial++
		entry := k.pool[k.rng.IntN(len(k.pool))]
		e := events.Event{ID: fmt.Sprintf("kill-%d", k.serial), Source: "/kill"}
		switch n := k.rng.IntN(10); {
		case n < 3:
			e.Type, e.Data = events.TypeViewsCounted, events.Views{List: entry.List, EntryID: entry.EntryID, Views: k.rng.Int64N(1000)}
		case n == 3:
			e.Type, e.Data = events.TypeDelisted, events.Delisting{List: entry.List, EntryID: entry.EntryID}
		default:
			entry.Name = fmt.Sprintf("%s %d", entry.Name, k.serial)
			e.Type, e.Data = events.TypeAmended, entry
		}
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
	publisher := events.NewPublisher(js, events.PublisherConfig{Timeout: 2 * time.Second})
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
func publishSome(ctx context.Context, p *events.Publisher, batch []events.Event) ([]sent, error) {
	if len(batch) == 1 {
		ack, err := p.Publish(ctx, batch[0])
		if err != nil {
			return nil, err
		}
		return []sent{{ack.Sequence, batch[0].ID, batch[0].Data.Subject()}}, nil
	}
	messages := make([]events.Message, len(batch))
	for i, e := range batch {
		messages[i] = events.Message{Event: e}
	}
	if _, err := p.PublishAll(ctx, messages); err != nil {
		return nil, err
	}
	acked := make([]sent, len(batch))
	for i, e := range batch {
		acked[i] = sent{0, e.ID, e.Data.Subject()}
	}
	return acked, nil
}

// check starts the server a last time and compares.
func (k *killer) check() {
	c := k.start(*kills)
	line := k.ready(c)
	k.notBackwards(line)
	stream := k.readStream(line.NATS)
	k.nothingLost(stream)
	k.answersAreRight(line, naive(stream))
	if status := c.end(syscall.SIGTERM); status != 0 {
		k.t.Errorf("stopped with status %d", status)
	}
	if len(k.acked) == 0 && *kills > 3 {
		k.t.Error("nothing was ever acknowledged: the test has tested nothing")
	}
	k.t.Logf("%d events acknowledged, %d in the stream", len(k.acked), len(stream))
}

// stored is a message of the stream.
type stored struct {
	seq   uint64
	event events.Event
}

// readStream reads the whole stream. Tombstones roll up, so earlier messages of their
// subject are gone.
func (k *killer) readStream(url string) []stored {
	k.t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		k.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	consumer, err := js.OrderedConsumer(ctx, events.DefaultStream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		k.t.Fatal(err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.drain(ctx, consumer, info.NumPending)
}

func (k *killer) drain(ctx context.Context, consumer jetstream.Consumer, pending uint64) []stored {
	k.t.Helper()
	messages, err := consumer.Messages()
	if err != nil {
		k.t.Fatal(err)
	}
	defer messages.Stop()
	out := make([]stored, 0, pending)
	k.poison = 0
	for range pending {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			k.t.Fatal(err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			k.t.Fatal(err)
		}
		e, err := events.DecodeMessage(msg.Subject(), msg.Data())
		if err != nil && k.poisoned {
			k.poison++
			continue
		}
		if err != nil {
			k.t.Fatal(err)
		}
		out = append(out, stored{meta.Sequence.Stream, e})
	}
	return out
}

// nothingLost looks for every acknowledged event. One that is not there must have been rolled up
// by a later tombstone of its subject.
func (k *killer) nothingLost(stream []stored) {
	k.t.Helper()
	there := map[string]uint64{}      // sequence by event id
	tombstones := map[string]uint64{} // sequence by subject
	for _, m := range stream {
		there[m.event.ID] = m.seq
		if m.event.Type.Tombstone() {
			tombstones[m.event.Data.Subject()] = m.seq
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
