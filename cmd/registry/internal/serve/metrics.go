package serve

import (
	"cmp"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"example.org/registry/events"
	"example.org/registry/httpapi/admin"
	"example.org/registry/projector"
	"example.org/registry/readmodel"
)

// registerMetrics adds the metrics of the projection, rebuilds, snapshots, the Go runtime and the
// process to the request metrics that httpapi registers itself.
func registerMetrics(reg *prometheus.Registry, l *live, stats *snapshotStats, lost func() (unread, limited uint64)) error {
	for _, c := range []prometheus.Collector{
		newCollector(l, stats, lost),
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

// scrape holds the values of one scrape. They are read once, so that they are consistent.
type scrape struct {
	view     *readmodel.View
	progress projector.Progress // zero until there is a projector
	running  bool               // there is a projector

	rankedSequence uint64 // at most that of the view
	rankedProblem  string

	rebuilding *admin.Rebuilding // nil if none is running
	rebuilt    [outcomes]uint64

	snapshots snapshotNumbers

	unread, limited uint64 // lines of the log
}

// metric is one metric family. values calls emit for each of its samples; a family without samples
// is omitted.
type metric struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	values func(s scrape, emit func(v float64, labels ...string))
}

// families returns all metrics of this package.
func families() []metric {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	var all []metric
	add := func(name string, kind prometheus.ValueType, help string, values func(scrape, func(float64, ...string)), labels ...string) {
		all = append(all, metric{prometheus.NewDesc("registry_"+name, help, labels, nil), kind, values})
	}
	always := func(name string, kind prometheus.ValueType, help string, value func(scrape) float64) {
		add(name, kind, help, func(s scrape, emit func(float64, ...string)) { emit(value(s)) })
	}
	// Before there is a projector, a sequence or a count of 0 would be wrong.
	running := func(name string, kind prometheus.ValueType, help string, value func(projector.Progress) float64) {
		add(name, kind, help, func(s scrape, emit func(float64, ...string)) {
			if s.running {
				emit(value(s.progress))
			}
		})
	}

	byList := func(name, help string, count func(*readmodel.View, events.List) int) {
		add(name, gauge, help, func(s scrape, emit func(float64, ...string)) {
			for _, list := range events.Lists() {
				emit(float64(count(s.view, list)), string(list))
			}
		}, "list")
	}

	byList("entries", "Entries that a list shows.", (*readmodel.View).NumEntries)
	byList("tombstones", "Entries that have left a list and have not been listed again.", (*readmodel.View).Tombstones)

	// Metrics that alerts use exist from the start. They are 0 while the saved state is being
	// loaded, or the broker is away.
	always("lag_seconds", gauge, "Seconds for which the model has not been complete; 0 while it is, and before the stream's end is known.",
		func(s scrape) float64 { return s.progress.LagSeconds })
	always("caught_up", gauge, "1 once the model has caught up with the stream since the start.",
		func(s scrape) float64 { return oneIf(s.progress.CaughtUp) })
	always("connected", gauge, "1 while the broker answers.",
		func(s scrape) float64 { return oneIf(s.progress.Connected) })
	add("frozen", gauge, "1 while nothing is applied, since the stream is missing or another registry's.", func(s scrape, emit func(float64, ...string)) {
		for _, reason := range []string{projector.FrozenMissing, projector.FrozenForeign} {
			emit(oneIf(s.progress.Frozen == reason), reason)
		}
	}, "reason")
	always("rewound", gauge, "1 since the stream came back in an older state, until a new history begins.",
		func(s scrape) float64 { return oneIf(s.progress.Rewound) })
	always("unpublished", gauge, "States that are known and shown, and that the stream lacks.",
		func(s scrape) float64 { return float64(s.progress.Unpublished) })

	running("stream_peers_missing", gauge, "Copies of the event stream that are missing or not current.",
		func(p projector.Progress) float64 { return float64(p.PeersMissing) })
	running("stream_last_sequence", gauge, "Last sequence of the event stream, at most a second old.",
		func(p projector.Progress) float64 { return float64(p.LastSequence) })
	running("checkpoint_sequence", gauge, "Stream sequence up to which every event has been dealt with.",
		func(p projector.Progress) float64 { return float64(p.Checkpoint) })
	running("saved_sequence", gauge, "Checkpoint of the store on disk.",
		func(p projector.Progress) float64 { return float64(p.Saved) })
	running("lag_events", gauge, "Stream sequences between the checkpoint and the stream's end.",
		func(p projector.Progress) float64 { return float64(p.Lag) })
	running("as_of_timestamp_seconds", gauge, "Last moment at which the model was known to be complete, in seconds since 1970.",
		func(p projector.Progress) float64 { return unix(p.AsOf) })
	running("rejected_events", gauge, "Copies of rejected events in their stream.",
		func(p projector.Progress) float64 { return float64(p.Rejected) })
	running("subjects_not_erased", gauge, "Subjects that have a tombstone and messages before it, which are yet to be erased.",
		func(p projector.Progress) float64 { return float64(p.WaitingPurges) })
	running("events_superseded_total", counter, "Events that this process has passed over, since a state with a greater revision was known.",
		func(p projector.Progress) float64 { return float64(p.Superseded) })
	running("removals_unheeded_total", counter, "Removals that this process has rejected, since a state with a greater revision is shown.",
		func(p projector.Progress) float64 { return float64(p.Unheeded) })
	running("states_put_back_total", counter, "States that this process has published again, since superseded or rejected messages came after them.",
		func(p projector.Progress) float64 { return float64(p.PutBack) })
	running("events_dealt_with_total", counter, "Events that this process has dealt with, rejected ones included.",
		func(p projector.Progress) float64 { return float64(p.Applied) })
	running("events_rejected_total", counter, "Events that this process has rejected.",
		func(p projector.Progress) float64 { return float64(p.RejectedHere) })

	always("ranked_sequence", gauge, "Stream sequence that the index of ranked search covers; 0 while there is none.",
		func(s scrape) float64 { return float64(s.rankedSequence) })
	always("ranked_lag_events", gauge, "Stream sequences between the index of ranked search and the checkpoint: what lies between may be missing from its answers.",
		func(s scrape) float64 { return float64(s.view.Sequence() - s.rankedSequence) })
	always("ranked_failed", gauge, "1 while the index of ranked search is being made anew because something was wrong with it.",
		func(s scrape) float64 { return oneIf(s.rankedProblem != "") })

	always("rebuild_running", gauge, "1 while a read model is being rebuilt beside the one that is served.",
		func(s scrape) float64 { return oneIf(s.rebuilding != nil) })
	always("rebuild_done_events", gauge, "Events that the rebuild under way has dealt with; 0 without one.",
		func(s scrape) float64 { return float64(cmp.Or(s.rebuilding, &admin.Rebuilding{}).Done) })
	always("rebuild_events", gauge, "Events that the rebuild under way has to deal with; 0 without one.",
		func(s scrape) float64 { return float64(cmp.Or(s.rebuilding, &admin.Rebuilding{}).Total) })
	add("rebuilds_total", counter, "Rebuilds asked for since the start, by outcome.", func(s scrape, emit func(float64, ...string)) {
		for o, n := range s.rebuilt {
			emit(float64(n), outcome(o).String())
		}
	}, "outcome")

	// Metrics of the newest snapshot are omitted while none is known.
	newest := func(name, help string, value func(snapshotNumbers) float64) {
		add("snapshot_"+name, gauge, help, func(s scrape, emit func(float64, ...string)) {
			if s.snapshots.newest.Name != "" {
				emit(value(s.snapshots))
			}
		})
	}
	newest("sequence", "Stream sequence of the newest snapshot in the object store that this process knows of.",
		func(n snapshotNumbers) float64 { return float64(n.newest.Header.Sequence) })
	newest("age_seconds", "Age of that snapshot in seconds, by this machine's clock.",
		func(n snapshotNumbers) float64 { return max(0, time.Since(n.newest.Time).Seconds()) })
	newest("timestamp_seconds", "When it was complete, by the broker's clock, in seconds since 1970.",
		func(n snapshotNumbers) float64 { return unix(n.newest.Time) })
	newest("bytes", "Length of that snapshot.",
		func(n snapshotNumbers) float64 { return float64(n.newest.Bytes) })
	add("snapshot_duration_seconds", gauge, "How long the last one that this process made took.", func(s scrape, emit func(float64, ...string)) {
		if s.snapshots.count > 0 {
			emit(s.snapshots.took.Seconds())
		}
	})
	always("snapshots_made_total", counter, "Snapshots that this process has put into the object store.",
		func(s scrape) float64 { return float64(s.snapshots.count) })
	always("snapshot_failures_total", counter, "Snapshots that this process tried to make and could not.",
		func(s scrape) float64 { return float64(s.snapshots.failures) })
	add("log_lines_dropped_total", counter, "Lines of the log that were not written: unread if nobody read them, limited if too many were alike.", func(s scrape, emit func(float64, ...string)) {
		emit(float64(s.unread), "unread")
		emit(float64(s.limited), "limited")
	}, "reason")
	return all
}

// collector exposes the metrics.
type collector struct {
	live    *live
	stats   *snapshotStats
	lost    func() (unread, limited uint64) // lines of the log
	metrics []metric
}

func newCollector(l *live, stats *snapshotStats, lost func() (unread, limited uint64)) *collector {
	return &collector{live: l, stats: stats, lost: lost, metrics: families()}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.scrape()
	for _, m := range c.metrics {
		m.values(s, func(v float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
		})
	}
}

func (c *collector) scrape() scrape {
	g := c.live.current()
	s := scrape{view: g.model.View(), rebuilding: c.live.rebuild.Load().document(time.Now()), snapshots: c.stats.numbers()}
	s.unread, s.limited = c.lost()
	s.progress, s.running = g.progress()
	s.rankedSequence, s.rankedProblem = g.rankedState()
	s.rankedSequence = min(s.rankedSequence, s.view.Sequence())
	for o := range s.rebuilt {
		s.rebuilt[o] = c.live.rebuilt[o].Load()
	}
	return s
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
