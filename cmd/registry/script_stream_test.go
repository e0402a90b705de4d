package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
)

// onStream calls f with the broker at url.
func onStream(ts *testscript.TestScript, url string, f func(context.Context, jetstream.JetStream) error) {
	nc, err := nats.Connect(url)
	ts.Check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ts.Check(f(ctx, js))
}

// scriptRecreate is: recreate URL COUNT SEED. It deletes the event stream of a broker and makes another one
// with so many events of its own; none at all where COUNT is negative.
func scriptRecreate(ts *testscript.TestScript, neg bool, args []string) {
	count, err := strconv.Atoi(args[1])
	ts.Check(err)
	seed, err := strconv.ParseUint(args[2], 10, 64)
	ts.Check(err)
	onStream(ts, args[0], func(ctx context.Context, js jetstream.JetStream) error {
		if err := js.DeleteStream(ctx, events.DefaultStream); err != nil || count < 0 {
			return err
		}
		return remake(ctx, js, count, seed)
	})
}

// remake makes the event stream again.
func remake(ctx context.Context, js jetstream.JetStream, n int, seed uint64) error {
	cfg := events.StreamConfig(events.DefaultStream, 1, events.DefaultHistory, events.NewEpoch())
	if _, err := eventstest.Create(ctx, js, cfg); err != nil {
		return err
	}
	messages := make([]events.Message, n)
	for i, e := range eventstest.Events(n, seed) {
		e.ID = fmt.Sprint("again-", seed, "-", i)
		messages[i] = events.Message{Event: e}
	}
	_, err := events.NewPublisher(js, events.PublisherConfig{}).PublishAll(ctx, messages)
	return err
}

// scriptRaw is: raw URL SUBJECT PAYLOAD. It publishes what no publisher of ours would; LONG is 100 KB of nothing.
func scriptRaw(ts *testscript.TestScript, neg bool, args []string) {
	payload := args[2]
	if payload == "LONG" {
		payload = strings.Repeat("x", 100_000)
	}
	onStream(ts, args[0], func(ctx context.Context, js jetstream.JetStream) error {
		_, err := js.Publish(ctx, args[1], []byte(payload))
		return err
	})
}

// scriptPurge is: purge URL SUBJECT KEEP. It erases what the event stream has of a subject, but for the last KEEP messages, as the
// nats command does.
func scriptPurge(ts *testscript.TestScript, neg bool, args []string) {
	keep, err := strconv.ParseUint(args[2], 10, 64)
	ts.Check(err)
	onStream(ts, args[0], func(ctx context.Context, js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, events.DefaultStream)
		if err != nil {
			return err
		}
		return stream.Purge(ctx, jetstream.WithPurgeSubject(args[1]), jetstream.WithPurgeKeep(keep))
	})
}
