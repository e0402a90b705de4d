package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"example.org/registry/events"
	"example.org/registry/projector"
)

// registerMetrics adds the projection, the Go runtime and the process to the request metrics that
// httpapi registers itself.
func registerMetrics(reg *prometheus.Registry, l *live) error {
	for _, c := range []prometheus.Collector{
		newProjectionCollector(l),
		newRebuildCollector(l),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	} {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	return nil
}

// number is one of those in the projector's progress.
type number struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(projector.Progress) float64
	early bool // shown before there is a projector, too: nothing is caught up, connected, frozen or known to be behind then
}

// projectionCollector reads the progress once a scrape, so that its numbers belong together.
// Until the projector runs it reports the entries and what alerts go by: a sequence or a count of 0 would be a wrong one.
type projectionCollector struct {
	live    *live
	numbers []number
	entries *prometheus.Desc
	indexed *prometheus.Desc
	behind  *prometheus.Desc
	failed  *prometheus.Desc
	memory  searchMemory
}

func newProjectionCollector(l *live) *projectionCollector {
	c := &projectionCollector{
		live: l,
		entries: prometheus.NewDesc("registry_entries",
			"Entries that a list shows.", []string{"list"}, nil),
		indexed: prometheus.NewDesc("registry_index_sequence",
			"Stream sequence that the text index covers: the checkpoint with --text-index=false, 0 until it has been made.", nil, nil),
		behind: prometheus.NewDesc("registry_index_lag_events",
			"Stream sequences between the text index and the checkpoint: searches look at what lies between one by one.", nil, nil),
		failed: prometheus.NewDesc("registry_index_failed",
			"1 while the text index cannot be written, or has been writing for longer than a disk should take: searches look at every entry it lacks.", nil, nil),
		memory: newSearchMemory(),
	}
	c.addGauges()
	c.addCounters()
	return c
}

func (c *projectionCollector) add(kind prometheus.ValueType, name, help string, value func(projector.Progress) float64) {
	c.numbers = append(c.numbers, number{prometheus.NewDesc("registry_"+name, help, nil, nil), kind, value, slices.Contains(beforeProjector, name)})
}

// beforeProjector are the numbers that are 0 while there is no projector yet: the saved state is being loaded, or there is none
// and the broker is waited for.
var beforeProjector = []string{"lag_seconds", "caught_up", "connected", "frozen"}

func (c *projectionCollector) addGauges() {
	add := func(name, help string, value func(projector.Progress) float64) {
		c.add(prometheus.GaugeValue, name, help, value)
	}
	add("stream_last_sequence", "Last sequence of the event stream, at most a second old.",
		func(p projector.Progress) float64 { return float64(p.LastSequence) })
	add("checkpoint_sequence", "Stream sequence up to which every event has been dealt with.",
		func(p projector.Progress) float64 { return float64(p.Checkpoint) })
	add("saved_sequence", "Checkpoint of the store on disk.",
		func(p projector.Progress) float64 { return float64(p.Saved) })
	add("lag_events", "Stream sequences between the checkpoint and the stream's end.",
		func(p projector.Progress) float64 { return float64(p.Lag) })
	add("lag_seconds", "Seconds for which the model has not been complete; 0 while it is, and before the stream's end is known.",
		func(p projector.Progress) float64 { return p.LagSeconds })
	add("as_of_timestamp_seconds", "Last moment at which the model was known to be complete, in seconds since 1970.",
		func(p projector.Progress) float64 { return unix(p.AsOf) })
	add("caught_up", "1 once the model has caught up with the stream since the start.",
		func(p projector.Progress) float64 { return oneIf(p.CaughtUp) })
	add("connected", "1 while the broker answers.",
		func(p projector.Progress) float64 { return oneIf(p.Connected) })
	add("frozen", "1 while the stream is not the one the model was made from, so nothing is applied.",
		func(p projector.Progress) float64 { return oneIf(p.Frozen) })
	add("rejected_events", "Copies of rejected events in their stream.",
		func(p projector.Progress) float64 { return float64(p.Rejected) })
	add("subjects_without_valid_event", "Subjects of which the stream holds rejected events alone.",
		func(p projector.Progress) float64 { return float64(len(p.SubjectsWithoutValidEvent)) })
}

func (c *projectionCollector) addCounters() {
	c.add(prometheus.CounterValue, "events_dealt_with_total", "Events that this process has dealt with, rejected ones included.",
		func(p projector.Progress) float64 { return float64(p.Applied) })
	c.add(prometheus.CounterValue, "events_rejected_total", "Events that this process has rejected.",
		func(p projector.Progress) float64 { return float64(p.RejectedHere) })
}

// Describe is part of prometheus.Collector.
func (c *projectionCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.entries
	out <- c.indexed
	out <- c.behind
	out <- c.failed
	c.memory.describe(out)
	for _, n := range c.numbers {
		out <- n.desc
	}
}

// Collect is part of prometheus.Collector.
func (c *projectionCollector) Collect(out chan<- prometheus.Metric) {
	g := c.live.now()
	view := g.model.View()
	for _, list := range events.Lists() {
		out <- prometheus.MustNewConstMetric(c.entries, prometheus.GaugeValue, float64(view.Entries(list)), string(list))
	}
	sequence, trouble := g.indexState()
	sequence = min(sequence, view.Sequence())
	out <- prometheus.MustNewConstMetric(c.indexed, prometheus.GaugeValue, float64(sequence))
	out <- prometheus.MustNewConstMetric(c.behind, prometheus.GaugeValue, float64(view.Sequence()-sequence))
	out <- prometheus.MustNewConstMetric(c.failed, prometheus.GaugeValue, oneIf(trouble != ""))
	c.memory.collect(out, view.Remembered())
	p, running := g.progress()
	for _, n := range c.numbers {
		if running || n.early {
			out <- prometheus.MustNewConstMetric(n.desc, n.kind, n.value(p))
		}
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
