package admin

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
)

const (
	sampleEvery = 2 * time.Second
	sampleCount = 450 // a quarter of an hour, 14 KB
)

// History stores the lag and the progress of the last quarter of an hour for the page's charts. Its
// zero value is empty and ready to use. One goroutine calls Run; any goroutine reads.
type History struct {
	mu      sync.Mutex
	samples [sampleCount]sample // a ring
	taken   int
}

// sample is the lag in events, and the checkpoint, at one moment.
type sample struct {
	at              time.Time
	lag, checkpoint uint64
}

// Run takes a sample at once and every two seconds until ctx ends. look returns the lag and the
// checkpoint.
func (h *History) Run(ctx context.Context, look func() (lag, checkpoint uint64)) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		lag, checkpoint := look()
		h.add(sample{time.Now(), lag, checkpoint})
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

// recent returns the samples, oldest first.
func (h *History) recent() []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken <= sampleCount {
		return append([]sample(nil), h.samples[:h.taken]...)
	}
	first := h.taken % sampleCount
	return append(append(make([]sample, 0, sampleCount), h.samples[first:]...), h.samples[:first]...)
}

// The size of a chart in its own units; the page stretches it.
const (
	chartWidth  = 600
	chartHeight = 100
)

// chart is a number over time, as an SVG polyline or as bars. The labels of its axes are text next
// to it.
type chart struct {
	ID, Title     string
	Width, Height int
	Points        string // of the polyline; empty for bars
	Bars          []bar
	Most, Half    string // at the top and in the middle of the vertical axis, which begins at 0
	Begin, End    time.Time
	Text          string // the same in words
}

// bar is a rectangle that stands on the horizontal axis.
type bar struct{ X, Y, Width, Height string }

// charts returns the charts of the last quarter of an hour, or nil if there are fewer than two
// samples, which make no line.
func (h *History) charts() []chart {
	samples := h.recent()
	if len(samples) < 2 {
		return nil
	}
	return []chart{lagChart(samples), eventsChart(samples)}
}

// newChart returns a chart of samples whose greatest value is most, and the value's size in chart
// units.
func newChart(id, title string, samples []sample, most uint64) (c chart, y func(uint64) float64) {
	top := roundUp(most)
	half := ""
	if top%2 == 0 {
		half = number(top / 2)
	}
	c = chart{ID: id, Title: title, Width: chartWidth, Height: chartHeight, Most: number(top), Half: half,
		Begin: samples[0].at, End: samples[len(samples)-1].at}
	return c, func(v uint64) float64 { return (chartHeight - 1) * (1 - float64(v)/float64(top)) }
}

// x returns the position of a time.
func (c *chart) x(at time.Time) float64 {
	return chartWidth * float64(at.Sub(c.Begin)) / float64(max(c.End.Sub(c.Begin), time.Nanosecond))
}

func lagChart(samples []sample) chart {
	most := uint64(0)
	for _, s := range samples {
		most = max(most, s.lag)
	}
	c, y := newChart("lag", "Lag in events", samples, most)
	var points strings.Builder
	for _, s := range samples {
		fmt.Fprintf(&points, "%.1f,%.1f ", c.x(s.at), y(s.lag))
	}
	c.Points = strings.TrimSpace(points.String())
	c.Text = fmt.Sprintf("Lag in events over the last %s: %s now, %s at most.",
		inWords(c.End.Sub(c.Begin)), number(samples[len(samples)-1].lag), number(most))
	return c
}

// eventsChart has a bar for each full minute, counted back from now. If a rebuild accepts another
// stream, the checkpoint may fall; that minute counts as zero.
func eventsChart(samples []sample) chart {
	type minute struct {
		from, to time.Time
		events   uint64
	}
	var minutes []minute // newest first
	most, all := uint64(0), uint64(0)
	last := len(samples) - 1
	for i := last; i >= 0; i-- {
		if full := samples[last].at.Sub(samples[i].at) >= time.Minute; full {
			m := minute{from: samples[i].at, to: samples[last].at}
			if samples[last].checkpoint > samples[i].checkpoint {
				m.events = samples[last].checkpoint - samples[i].checkpoint
			}
			minutes = append(minutes, m)
			most, all, last = max(most, m.events), all+m.events, i
		}
	}
	c, y := newChart("events", "Events a minute", samples, most)
	for _, m := range minutes {
		const gap = 2 // between two bars
		from, to, top := c.x(m.from)+gap, c.x(m.to), y(m.events)
		c.Bars = append(c.Bars, bar{unit(from), unit(top), unit(max(to-from, 1)), unit(chartHeight - 1 - top)})
	}
	if len(minutes) == 0 {
		c.Text = "Events dealt with in each minute: the first minute is not over yet."
		return c
	}
	c.Text = fmt.Sprintf("Events dealt with in each of the last %d minutes: %s in the last one, %s at most, %s in all.",
		len(minutes), number(minutes[0].events), number(most), number(all))
	if len(minutes) == 1 {
		c.Text = fmt.Sprintf("Events dealt with in the last minute: %s.", number(all))
	}
	return c
}

func unit(v float64) string { return fmt.Sprintf("%.1f", v) }

// roundUp returns the next number of the form 1, 2 or 5 times a power of ten, at least 1.
func roundUp(n uint64) uint64 {
	for power := uint64(1); power <= math.MaxUint64/10; power *= 10 {
		for _, digit := range []uint64{1, 2, 5} {
			if n <= digit*power {
				return digit * power
			}
		}
	}
	return n
}

// inWords formats the time that a chart covers.
func inWords(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d seconds", int(d.Round(time.Second)/time.Second))
	}
	return fmt.Sprintf("%d minutes", int(d.Round(time.Minute)/time.Minute))
}
