//go:build unix && !race

package cluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"example.org/registry/events"
	"example.org/registry/events/eventstest"
	"example.org/registry/events/publish"
)

// BenchmarkConsumers measures what it costs the three nodes to feed 1, 10 and 100 replicas. An
// operation is one event, published and delivered to all of them.
func BenchmarkConsumers(b *testing.B) {
	for _, replicas := range []int{1, 10, 100} {
		b.Run(fmt.Sprint("replicas=", replicas), func(b *testing.B) { feed(b, replicas) })
	}
}

func feed(b *testing.B, replicas int) {
	c, js := startNodes(b)
	eventstest.Stream(b, js, func(cfg *jetstream.StreamConfig) { cfg.Replicas = 3 })
	var arrived sync.WaitGroup
	arrived.Add(replicas)
	for range replicas {
		follow(b, c, uint64(b.N), arrived.Done)
	}
	messages := make([]publish.Message, b.N)
	for i, e := range eventstest.Events(b.N, 8) {
		messages[i].Event = e
	}
	before := c.processorTime(b)
	b.ResetTimer()
	_, err := publish.New(js, publish.Config{BatchSize: 100}).PublishAll(context.Background(), messages)
	require.NoError(b, err)
	arrived.Wait()
	b.StopTimer()
	b.ReportMetric(float64((c.processorTime(b)-before).Microseconds())/float64(b.N), "node-cpu-µs/op")
}

// follow makes a consumer as the projector does, on a connection of its own.
func follow(b *testing.B, c *nodes, last uint64, done func()) {
	b.Helper()
	consumer, err := c.connect().CreateConsumer(context.Background(), events.DefaultStream, jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	})
	require.NoError(b, err)
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		if meta, err := m.Metadata(); err == nil && meta.Sequence.Stream == last {
			done()
		}
	}, jetstream.PullMaxMessagesWithBytesLimit(2000, 8<<20), jetstream.PullHeartbeat(time.Second))
	require.NoError(b, err)
	b.Cleanup(consuming.Stop)
}

// processorTime returns the CPU time that the nodes have used. Linux counts it in ticks of 10
// ms.
func (c *nodes) processorTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	for _, n := range c.all {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.Pid()))
		if err != nil {
			b.Skip(err)
		}
		var user, system int64
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
		require.NoError(b, err)
		sum += time.Duration(user+system) * 10 * time.Millisecond
	}
	return sum
}
