package serve

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"example.org/registry/events"
	"example.org/registry/projector"
)

// newMetrics returns a Prometheus registry with the metrics of this package (own), the Go runtime, the
// process and the build. httpapi adds the metrics of requests.
func newMetrics(own collector) *prometheus.Registry {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(
		own,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	return metrics
}

// collector collects the metrics of the projection, the snapshots and the log.
type collector struct {
	live      *live
	snapshots *snapshotter
	lostLines func() (unread, limited uint64)
}

// Describe describes nothing: which metrics there are depends on the state of the process.
func (collector) Describe(chan<- *prometheus.Desc) {}

// scrape is one answer to Prometheus.
type scrape chan<- prometheus.Metric

func (s scrape) gauge(name, help string, value float64, label ...string) {
	s.emitSample(prometheus.GaugeValue, name, help, value, label)
}

func (s scrape) counter(name, help string, value uint64, label ...string) {
	s.emitSample(prometheus.CounterValue, name, help, float64(value), label)
}

// emitSample adds a sample. label is empty, or a name and its value.
func (s scrape) emitSample(kind prometheus.ValueType, name, help string, value float64, label []string) {
	labels := prometheus.Labels{}
	if len(label) == 2 {
		labels[label[0]] = label[1]
	}
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc("registry_"+name, help, nil, labels), kind, value)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := scrape(out)
	g := c.live.current()
	view := g.model.View()
	p, running := g.progress()

	for _, list := range events.Lists() {
		s.gauge("entries", "Entries that a list shows.", float64(view.NumEntries(list)), "list", string(list))
		s.gauge("tombstones", "Entries that have left a list and have not been listed again.", float64(view.Tombstones(list)), "list", string(list))
	}

	// Metrics that alerts use exist from the start. They are 0 before there is a projector.
	s.gauge("lag_seconds", "Seconds for which the model has not been complete; 0 while it is, and before the stream's end is known.", p.LagSeconds)
	s.gauge("connected", "1 while the broker answers.", oneIf(p.Connected))
	for _, reason := range []string{projector.FrozenMissing, projector.FrozenForeign} {
		s.gauge("frozen", "1 while nothing is applied, since the stream is missing or another registry's.", oneIf(p.Frozen == reason), "reason", reason)
	}
	s.gauge("rewound", "1 since the stream came back in an older state, until registry recover.", oneIf(p.Rewound))
	s.gauge("unpublished", "States that are known and shown, and that the stream lacks.", float64(p.Unpublished))

	// Before there is a projector, a sequence or a count of 0 would be wrong.
	if running {
		s.collectProgress(p)
	}

	indexed, problem := g.rankedState(view) // indexed is a sequence, at most that of the view
	s.gauge("ranked_lag_events", "Stream sequences between the index of ranked search and the checkpoint: their events may be missing from its answers.", float64(view.Sequence()-indexed))
	s.gauge("ranked_failed", "1 while the index of ranked search is being made again because something was wrong with it.", oneIf(problem != ""))

	if newest := c.snapshots.newest.Load(); newest != nil {
		s.gauge("snapshot_sequence", "Stream sequence of the newest snapshot in the object store that this process knows of.", float64(newest.Header.Sequence))
		s.gauge("snapshot_age_seconds", "Age of that snapshot in seconds, by this machine's clock.", max(0, time.Since(newest.Time).Seconds()))
	}

	s.counter("snapshots_made_total", "Snapshots that this process has put into the object store.", c.snapshots.made.Load())

	unread, limited := c.lostLines()
	const dropped = "Lines of the log that were not written: unread if nobody read them, limited if too many were alike."
	s.counter("log_lines_dropped_total", dropped, unread, "reason", "unread")
	s.counter("log_lines_dropped_total", dropped, limited, "reason", "limited")
}

// collectProgress adds the metrics of the projector.
func (s scrape) collectProgress(p projector.Progress) {
	s.gauge("stream_peers_missing", "Copies of the event stream that are missing or not current.", float64(p.PeersMissing))
	s.gauge("stream_last_sequence", "Last sequence of the event stream, at most a second old.", float64(p.LastSequence))
	s.gauge("checkpoint_sequence", "Stream sequence up to which every event has been dealt with.", float64(p.Checkpoint))
	s.gauge("saved_sequence", "Checkpoint of the store on disk.", float64(p.Saved))
	s.gauge("lag_events", "Stream sequences between the checkpoint and the stream's end.", float64(p.Lag))
	s.gauge("rejected_events", "Copies of rejected events in their stream.", float64(p.Rejected))
	s.gauge("subjects_not_erased", "Subjects that have a tombstone and messages before it, which are yet to be erased.", float64(p.WaitingPurges))

	asOf := 0.0
	if !p.AsOf.IsZero() {
		asOf = float64(p.AsOf.UnixMilli()) / 1000
	}
	s.gauge("as_of_timestamp_seconds", "Last moment at which the model was known to be complete, in seconds since 1970.", asOf)

	s.counter("events_dealt_with_total", "Events that this process has dealt with, rejected ones included.", p.Applied)
	s.counter("events_rejected_total", "Events that this process has rejected.", p.RejectedHere)
	s.counter("events_superseded_total", "Events that this process has passed over, since a state with a greater revision was known.", p.Superseded)
	s.counter("removals_unheeded_total", "Removals that this process has rejected, since a state with a greater revision is shown.", p.Unheeded)
	s.counter("states_put_back_total", "States that this process has published again, since superseded or rejected messages came after them.", p.RestoredStates)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
