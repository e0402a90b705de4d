package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"example.org/registry/readmodel"
)

// searchMemory is what is known of the remembered searches.
type searchMemory struct{ searches, bytes, lookups *prometheus.Desc }

func newSearchMemory() searchMemory {
	return searchMemory{
		prometheus.NewDesc("registry_remembered_searches", "Text searches of which the result is remembered.", nil, nil),
		prometheus.NewDesc("registry_remembered_searches_bytes", "Memory of the remembered results, by estimate.", nil, nil),
		prometheus.NewDesc("registry_remembered_search_lookups_total",
			"Text searches that were not answered by a remembered page: hit, where the result was remembered, or miss.", []string{"outcome"}, nil),
	}
}

func (m searchMemory) describe(out chan<- *prometheus.Desc) {
	out <- m.searches
	out <- m.bytes
	out <- m.lookups
}

func (m searchMemory) collect(out chan<- prometheus.Metric, r readmodel.Remembered) {
	out <- prometheus.MustNewConstMetric(m.searches, prometheus.GaugeValue, float64(r.Searches))
	out <- prometheus.MustNewConstMetric(m.bytes, prometheus.GaugeValue, float64(r.Bytes))
	out <- prometheus.MustNewConstMetric(m.lookups, prometheus.CounterValue, float64(r.Hits), "hit")
	out <- prometheus.MustNewConstMetric(m.lookups, prometheus.CounterValue, float64(r.Misses), "miss")
}
