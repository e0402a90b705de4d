package main

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/snapshots/bucket"
)

// snapshotStats is what the metrics show of snapshots. The zero value knows of none. Any goroutine may use it.
type snapshotStats struct {
	mu       sync.Mutex
	newest   bucket.Item // of our stream, whoever made it; no name: none is known
	took     time.Duration
	count    uint64 // made by this process
	failures uint64
}

func (s *snapshotStats) made(i bucket.Item, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest, s.took = i, took
	s.count++
}

func (s *snapshotStats) saw(i bucket.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = i
}

// failed counts a failure, unless the asker has gone or the process stops.
func (s *snapshotStats) failed(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
}

// snapshotCollector shows them. Those of the newest snapshot are left out while none is known.
type snapshotCollector struct {
	stats                                   *snapshotStats
	sequence, age, stamp, bytes, took, done *prometheus.Desc
	failures                                *prometheus.Desc
}

func newSnapshotCollector(s *snapshotStats) *snapshotCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("registry_snapshot"+name, help, nil, nil)
	}
	return &snapshotCollector{
		stats:    s,
		sequence: desc("_sequence", "Stream sequence of the newest snapshot in the object store that this process knows of."),
		age:      desc("_age_seconds", "Age of that snapshot in seconds, by this machine's clock."),
		stamp:    desc("_timestamp_seconds", "When it was complete, by the broker's clock, in seconds since 1970."),
		bytes:    desc("_bytes", "Length of that snapshot."),
		took:     desc("_duration_seconds", "How long the last one that this process made took."),
		done:     desc("s_made_total", "Snapshots that this process has put into the object store."),
		failures: desc("_failures_total", "Snapshots that this process tried to make and could not."),
	}
}

// Describe is part of prometheus.Collector.
func (c *snapshotCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.sequence, c.age, c.stamp, c.bytes, c.took, c.done, c.failures} {
		out <- d
	}
}

// Collect is part of prometheus.Collector.
func (c *snapshotCollector) Collect(out chan<- prometheus.Metric) {
	c.stats.mu.Lock()
	defer c.stats.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	out <- prometheus.MustNewConstMetric(c.done, prometheus.CounterValue, float64(c.stats.count))
	out <- prometheus.MustNewConstMetric(c.failures, prometheus.CounterValue, float64(c.stats.failures))
	if i := c.stats.newest; i.Name != "" {
		gauge(c.sequence, float64(i.Manifest.Sequence))
		gauge(c.age, max(0, time.Since(i.Time).Seconds()))
		gauge(c.stamp, unix(i.Time))
		gauge(c.bytes, float64(i.Bytes))
	}
	if c.stats.count > 0 {
		gauge(c.took, c.stats.took.Seconds())
	}
}
