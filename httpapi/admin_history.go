package httpapi

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// What is remembered of the lag, for the chart of the operators' page.
const (
	sampleEvery = 2 * time.Second
	sampleCount = 450 // a quarter of an hour, 10 KB
)

// History remembers the lag of the last quarter of an hour. Its zero value is ready and empty. One
// goroutine calls Run, any goroutine reads.
type History struct {
	mu      sync.Mutex
	samples [sampleCount]sample // a ring
	taken   int
}

// sample is the lag in events at a moment.
type sample struct {
	at  time.Time
	lag uint64
}

// Run takes a sample of lag at once and every two seconds until ctx ends.
func (h *History) Run(ctx context.Context, lag func() uint64) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		h.add(sample{time.Now(), lag()})
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *History) add(s sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.samples[h.taken%sampleCount] = s
	h.taken++
}

// recent is the samples, oldest first.
func (h *History) recent() []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken <= sampleCount {
		return append([]sample(nil), h.samples[:h.taken]...)
	}
	first := h.taken % sampleCount
	return append(append(make([]sample, 0, sampleCount), h.samples[first:]...), h.samples[:first]...)
}

// The chart's coordinates; the page stretches them.
const (
	chartWidth  = 600
	chartHeight = 100
)

// chart is a line over time, as the page draws it.
type chart struct {
	Width, Height int
	Points        string // of an SVG polyline
	Text          string // the same for those who do not see it
}

// chart draws what is remembered; nil with fewer than two samples, which make no line.
func (h *History) chart() *chart {
	samples := h.recent()
	if len(samples) < 2 {
		return nil
	}
	most := uint64(0)
	for _, s := range samples {
		most = max(most, s.lag)
	}
	begin, last := samples[0].at, samples[len(samples)-1]
	span := max(last.at.Sub(begin), time.Nanosecond)
	var points strings.Builder
	for _, s := range samples {
		x := chartWidth * float64(s.at.Sub(begin)) / float64(span)
		y := (chartHeight - 1) * (1 - float64(s.lag)/float64(max(most, 1)))
		fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
	}
	return &chart{chartWidth, chartHeight, strings.TrimSpace(points.String()),
		fmt.Sprintf("Lag in events over the last %s: %s now, %s at most.", minutes(span), number(last.lag), number(most))}
}

// minutes is a span as a person says it.
func minutes(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d seconds", int(d.Round(time.Second)/time.Second))
	}
	return fmt.Sprintf("%d minutes", int(d.Round(time.Minute)/time.Minute))
}
