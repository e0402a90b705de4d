package main

import (
	"errors"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/httpapi"
)

// document is how far a rebuild is; nil when none is under way.
func (b *rebuilding) document(now time.Time) *httpapi.Rebuilding {
	if b == nil {
		return nil
	}
	p := b.fresh.projector.Progress()
	doc := &httpapi.Rebuilding{Done: p.Done, Total: p.Total}
	if took := now.Sub(b.began).Seconds(); took > 0 {
		doc.PerSecond = math.Round(float64(p.Done) / took)
	}
	if doc.PerSecond > 0 {
		doc.ETASeconds = math.Ceil(float64(p.Total-p.Done) / doc.PerSecond)
	}
	return doc
}

// rebuildCollector is the metrics of rebuilds.
type rebuildCollector struct {
	live              *live
	running           *prometheus.Desc
	done, total, ever *prometheus.Desc
}

func newRebuildCollector(l *live) *rebuildCollector {
	return &rebuildCollector{
		live:    l,
		running: prometheus.NewDesc("registry_rebuild_running", "1 while a read model is being rebuilt beside the one that is served.", nil, nil),
		done:    prometheus.NewDesc("registry_rebuild_done_events", "Events that the rebuild under way has dealt with; 0 without one.", nil, nil),
		total:   prometheus.NewDesc("registry_rebuild_events", "Events that the rebuild under way has to deal with; 0 without one.", nil, nil),
		ever:    prometheus.NewDesc("registry_rebuilds_total", "Rebuilds asked for since the start, by outcome.", []string{"outcome"}, nil),
	}
}

// Describe is part of prometheus.Collector.
func (c *rebuildCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.running
	out <- c.done
	out <- c.total
	out <- c.ever
}

// Collect is part of prometheus.Collector.
func (c *rebuildCollector) Collect(out chan<- prometheus.Metric) {
	doc, running := c.live.rebuild.Load().document(time.Now()), 1.0
	if doc == nil {
		doc, running = &httpapi.Rebuilding{}, 0
	}
	out <- prometheus.MustNewConstMetric(c.running, prometheus.GaugeValue, running)
	out <- prometheus.MustNewConstMetric(c.done, prometheus.GaugeValue, float64(doc.Done))
	out <- prometheus.MustNewConstMetric(c.total, prometheus.GaugeValue, float64(doc.Total))
	for i := range c.live.rebuilds {
		out <- prometheus.MustNewConstMetric(c.ever, prometheus.CounterValue, float64(c.live.rebuilds[i].Load()), outcome(i).String())
	}
}

// outcome is what became of a rebuild.
type outcome int

const (
	rebuildDone outcome = iota
	rebuildRefused
	rebuildFailed
	outcomes // how many there are
)

func (o outcome) String() string { return [...]string{"done", "refused", "failed"}[o] }

// counted takes note of how a rebuild ended.
func (l *live) counted(err error) {
	var refused httpapi.Refused
	o := rebuildFailed
	switch {
	case err == nil:
		o = rebuildDone
	case errors.As(err, &refused):
		o = rebuildRefused
	}
	l.rebuilds[o].Add(1)
}
