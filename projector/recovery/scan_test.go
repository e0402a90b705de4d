package recovery

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/leader"
)

// A delivery that is lost on the way is read again, in order and once, and so is a second one; what
// was purged meanwhile is no loss.
func TestScanWithLostDeliveries(t *testing.T) {
	js := eventstest.Connect(t, eventstest.Broker(t))
	stream := eventstest.Stream(t, js)
	long := []byte(strings.Repeat("x", 200<<10)) // more in all than the broker sends at once
	const n = 150
	for i := range n {
		eventstest.PublishRaw(t, js, fmt.Sprintf("registry.servers.s%d", i), long)
	}
	// Another client takes a delivery of the scan's, whose pulls end long before the end.
	take := func() {
		for name := range stream.ConsumerNames(t.Context()).Name() {
			c, err := js.Consumer(t.Context(), events.DefaultStream, name)
			require.NoError(t, err)
			if _, err := c.Next(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want, last uint64
	found, err := Scan(t.Context(), leader.Stream{JS: js, Name: events.DefaultStream}, func(m leader.Message) {
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
	if err != nil || last != n-1 || len(found.States) != n-1 {
		t.Fatalf("%v after message %d", err, last)
	}
}
