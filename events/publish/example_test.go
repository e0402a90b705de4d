package publish_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/events"
	"example.org/registry/events/broker"
	"example.org/registry/events/publish"
	"example.org/registry/events/stream"
)

// A moderation backend puts a fraudster on the list, and takes it off when the appeal succeeds.
func Example() {
	url, stop := exampleBroker()
	defer stop()

	nc, err := nats.Connect(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		fmt.Println(err)
		return
	}
	publisher := publish.New(js, publish.Config{Stream: events.DefaultStream})

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	entry := events.Entry{
		List: events.Scammers, EntryID: "66f2c0ffee", ChatID: "900000000000000001", Name: "Jan Oszust",
		Reason: "Wziął **zaliczkę** i zniknął.", ReportID: "R-2026-17", ReportedAt: time.Now(), Revision: 1,
	}
	ack, err := publisher.Publish(ctx, events.Event{
		ID: events.StateID(entry), Source: "https://moderation.example/panel", Type: events.TypeListed, Time: time.Now(), Data: entry,
	})
	fmt.Println(ack.Sequence, err)

	ack, err = publisher.Publish(ctx, events.Event{
		ID: "66f2c0ffee@2", Source: "https://moderation.example/panel", Type: events.TypeDelisted,
		Data: events.Delisting{List: events.Scammers, EntryID: "66f2c0ffee", Revision: 2},
	})
	fmt.Println(ack.Sequence, err)

	_, err = publisher.Publish(ctx, events.Event{
		ID: "66f2c0ffee@3", Source: "https://moderation.example/panel", Type: events.TypeDelisted,
		Data: events.Delisting{List: "fraudsters", EntryID: "66f2c0ffee", Revision: 3},
	})
	fmt.Println(err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// data.list: must be scammers, servers or legit
}

// exampleBroker stands for the broker of `registry serve`.
func exampleBroker() (url string, stop func()) {
	dir, err := os.MkdirTemp("", "registry-example")
	if err != nil {
		panic(err)
	}
	b, err := broker.Start(broker.Config{StoreDir: dir, Addr: "127.0.0.1:0"})
	if err != nil {
		panic(err)
	}
	nc, err := b.Connect()
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := js.CreateStream(ctx, stream.Config(events.DefaultStream, 1, events.DefaultHistory, stream.Identity{})); err != nil {
		panic(err)
	}
	return b.ClientURL(), func() {
		b.Shutdown()
		_ = os.RemoveAll(dir)
	}
}
