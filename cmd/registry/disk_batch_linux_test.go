package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/eventstest"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
)

// leave makes the disk full but for some bytes.
func (d *disk) leave(room int64) {
	d.t.Helper()
	d.fill()
	info, err := os.Stat(d.filler())
	if err == nil {
		err = os.Truncate(d.filler(), info.Size()-room)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// The embedded broker's disk gets full in the middle of an atomic batch: while the broker sets the batch aside, which takes
// as much room as the batch, and while it stores it, which takes the same again; of the first batch and of a later one. When
// there is room again each batch is there whole or not at all, what was acknowledged is there, and publishing the same file
// again completes it.
func TestDiskFullInsideBatch(t *testing.T) {
	for _, quarters := range []int64{2, 5, 7, 9} {
		t.Run(fmt.Sprintf("room for %d quarters of a batch", quarters), func(t *testing.T) {
			t.Parallel()
			c := newCut(t)
			c.file("first", 1)
			if err := c.publish("first"); err != nil {
				t.Fatal(err)
			}
			c.disk.leave(c.bytes() * quarters / 4)
			c.file("second", 2, 3, 4)
			sure := append(c.ids["first"], c.ids["second"][:c.publishUntilFull("second")]...)
			health := c.broker.Health()
			c.disk.leave(4 << 20)
			if health == nil || c.broker.Recover(health) {
				t.Fatalf("a new server on a disk that would be full again at once; health: %v", health)
			}
			c.disk.free()
			if !c.broker.Recover(health) {
				t.Fatalf("no new server; health: %v", health)
			}
			c.js = eventstest.Connect(t, c.broker, projector.ConnectOptions()...)
			c.whole(sure)
			if err := c.publish("second"); err != nil {
				t.Fatal(err)
			}
			c.complete()
		})
	}
}

// cut is a broker on a small disk, and what has been published into it.
type cut struct {
	*testing.T
	disk   *disk
	broker *broker.Broker
	js     jetstream.JetStream
	dir    string
	model  *readmodel.Model    // of all files
	ids    map[string][]string // of a file's events, in order
}

func newCut(t *testing.T) *cut {
	c := &cut{T: t, dir: t.TempDir(), model: readmodel.New(), ids: map[string][]string{}}
	store := filepath.Join(c.dir, "broker")
	c.disk = mountDisk(t, store, "64m")
	c.broker = eventstest.Broker(t, func(cfg *broker.Config) { cfg.StoreDir, cfg.UnsafeNoSync = store, false })
	c.js = eventstest.Connect(t, c.broker, projector.ConnectOptions()...)
	eventstest.Stream(t, c.js, func(cfg *jetstream.StreamConfig) { cfg.MaxMsgsPerSubject = -1 })
	return c
}

// file makes one of a thousand entries, in a batch's worth of events for each version.
func (c *cut) file(name string, versions ...int) {
	c.Helper()
	var text bytes.Buffer
	renderer := readmodel.NewRenderer()
	for _, version := range versions {
		for _, e := range eventstest.Entries(batchLines, 1) {
			e.Name = fmt.Sprintf("%s %d", e.Name, version)
			event := eventstest.Listed(e, version)
			line, err := events.Encode(event)
			if err != nil {
				c.Fatal(err)
			}
			text.Write(append(line, '\n'))
			c.ids[name] = append(c.ids[name], event.ID)
			seq := c.model.View().Sequence() + 1
			c.model.Apply([]readmodel.Record{renderer.Render(seq, e)}, seq)
		}
	}
	if err := os.WriteFile(filepath.Join(c.dir, name), text.Bytes(), 0o600); err != nil {
		c.Fatal(err)
	}
}

// publish is registry publish.
func (c *cut) publish(name string) error {
	return run(c.Context(), []string{"publish", "--nats-url=" + c.broker.ClientURL(), filepath.Join(c.dir, name)},
		func(string) string { return "" }, strings.NewReader(""), io.Discard, io.Discard)
}

// publishUntilFull is publish for a disk that will get full, without its patience: the broker gives no answer then. It says
// how many events are certain to be stored, counted from the first.
func (c *cut) publishUntilFull(name string) int {
	c.Helper()
	f, err := os.Open(filepath.Join(c.dir, name))
	if err != nil {
		c.Fatal(err)
	}
	defer f.Close()
	var messages []events.Message
	for lines := bufio.NewScanner(f); lines.Scan(); {
		e, err := events.Decode(lines.Bytes())
		if err != nil {
			c.Fatal(err)
		}
		messages = append(messages, events.Message{Event: e})
	}
	_, err = events.NewPublisher(c.js, events.PublisherConfig{Timeout: time.Second}).PublishAll(c.Context(), messages)
	var stopped *events.MessageError
	if !errors.As(err, &stopped) {
		c.Fatalf("the disk was never full: %v", err)
	}
	return stopped.Index
}

// bytes is how much the stream takes.
func (c *cut) bytes() int64 {
	c.Helper()
	info, err := projector.StreamInfo(c.Context(), c.js, events.DefaultStream)
	if err != nil {
		c.Fatal(err)
	}
	return int64(info.State.Bytes)
}

// whole says whether each batch in the stream has its beginning, its end and all between, and whether what is sure to be
// stored is there.
func (c *cut) whole(sure []string) {
	c.Helper()
	there, members, last := map[string]bool{}, map[string]int{}, map[string]bool{}
	for _, msg := range c.read() {
		h := msg.Headers()
		there[h.Get(jetstream.MsgIDHeader)] = true
		if id := h.Get("Nats-Batch-Id"); id != "" {
			members[id]++
			last[id] = h.Get("Nats-Batch-Commit") != ""
			if h.Get("Nats-Batch-Sequence") != strconv.Itoa(members[id]) {
				c.Fatalf("member %s of batch %s after %d others", h.Get("Nats-Batch-Sequence"), id, members[id]-1)
			}
		}
	}
	for id, n := range members {
		if !last[id] {
			c.Errorf("batch %s ends after %d of its messages", id, n)
		}
	}
	for _, id := range sure {
		if !there[id] {
			c.Fatalf("event %s was acknowledged and is lost", id)
		}
	}
	c.Logf("%d events there, %d acknowledged, batches: %v", len(there), len(sure), members)
}

func (c *cut) read() (all []jetstream.Msg) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	consumer, err := c.js.OrderedConsumer(ctx, events.DefaultStream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		c.Fatal(err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		c.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		c.Fatal(err)
	}
	defer messages.Stop()
	for range info.NumPending {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			c.Fatal(err)
		}
		all = append(all, msg)
	}
	return all
}

// complete compares a replay with a model that was given the files.
func (c *cut) complete() {
	c.Helper()
	r := startReplay(c.js.Conn(), events.DefaultStream)
	defer r.stop()
	if err := r.catchUp(c.Context(), io.Discard); err != nil {
		c.Fatal(err)
	}
	if got, want := r.model.View().Digest(), c.model.View().Digest(); got != want {
		c.Errorf("digest %s, of the files %s", got, want)
	}
}
