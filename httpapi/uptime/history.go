package uptime

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Days is how many days are stored, including today.
const Days = 90

// Check is the outcome of probing one component.
type Check struct {
	ID      string
	OK      bool
	Latency time.Duration // until the response
}

// Component is the history of one component.
type Component struct {
	Days []Day // 90 of them, oldest first; the last is today
	Last Incident
}

// Day summarizes a component on one day in UTC.
type Day struct {
	Start    time.Time
	Checks   int           // 0 if nothing is known
	Failures int           // of the checks
	Latency  time.Duration // mean of the successful checks
}

// Incident is a period in which a component did not respond: from the first failed check to the
// next successful one. The zero value is none.
type Incident struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"` // zero while it lasts
}

// history holds the data of all components. Its JSON is the stored form.
type history struct {
	Version    int                `json:"version"`
	Components map[string]*record `json:"components"`
}

// record holds the data of one component.
type record struct {
	Days map[string]*tally `json:"days"` // by date, as in 2026-11-22
	Last Incident          `json:"last"`
}

// tally sums up one day.
type tally struct {
	Checks   int   `json:"checks"`
	Failures int   `json:"failures,omitempty"`
	Millis   int64 `json:"ms"` // sum over the successful checks
}

// version is that of the stored form. Other versions are not read.
const version = 1

// Bounds for reading, so that a damaged value cannot grow.
const (
	maxStored     = 256 << 10 // bytes
	maxComponents = 16
)

func newHistory() *history { return &history{version, map[string]*record{}} }

// parse reads the stored form.
func parse(stored []byte) (*history, error) {
	h := newHistory()
	if len(stored) > maxStored {
		return nil, fmt.Errorf("%d bytes", len(stored))
	}
	if err := json.Unmarshal(stored, h); err != nil {
		return nil, err
	}
	if h.Version != version || len(h.Components) > maxComponents {
		return nil, fmt.Errorf("version %d of %d components", h.Version, len(h.Components))
	}
	for id, r := range h.Components {
		if r == nil || r.Days == nil {
			return nil, fmt.Errorf("nothing of %.20q", id)
		}
		for day, t := range r.Days {
			if _, err := time.Parse(time.DateOnly, day); err != nil || t == nil || t.Failures < 0 || t.Checks < t.Failures || t.Millis < 0 {
				return nil, fmt.Errorf("nothing of the day %.20q", day)
			}
		}
		r.prune()
	}
	return h, nil
}

// add counts one round of checks.
func (h *history) add(at time.Time, checks []Check) {
	for _, c := range checks {
		r := h.Components[c.ID]
		if r == nil {
			if len(h.Components) == maxComponents {
				continue
			}
			r = &record{Days: map[string]*tally{}}
			h.Components[c.ID] = r
		}
		r.add(at.UTC(), c)
	}
}

func (r *record) add(at time.Time, c Check) {
	day := at.Format(time.DateOnly)
	t := r.Days[day]
	if t == nil {
		t = &tally{}
		r.Days[day] = t
		r.prune()
	}
	t.Checks++
	going := !r.Last.From.IsZero() && r.Last.To.IsZero()
	switch {
	case c.OK:
		t.Millis += c.Latency.Milliseconds()
		if going {
			r.Last.To = at
		}
	case going:
		t.Failures++
	default:
		t.Failures++
		r.Last = Incident{From: at}
	}
}

// prune drops the oldest days beyond Days.
func (r *record) prune() {
	if len(r.Days) <= Days {
		return
	}
	days := slices.Sorted(maps.Keys(r.Days)) // dates sort as text
	for _, day := range days[:len(days)-Days] {
		delete(r.Days, day)
	}
}

// component returns the history of a component up to the day of now.
func (h *history) component(id string, now time.Time) Component {
	r := h.Components[id]
	if r == nil {
		r = &record{}
	}
	today := now.UTC().Truncate(24 * time.Hour)
	c := Component{Days: make([]Day, Days)}
	for i := range c.Days {
		start := today.AddDate(0, 0, i-Days+1)
		c.Days[i] = Day{Start: start}
		if t := r.Days[start.Format(time.DateOnly)]; t != nil {
			c.Days[i].Checks, c.Days[i].Failures = t.Checks, t.Failures
			if answered := t.Checks - t.Failures; answered > 0 {
				c.Days[i].Latency = time.Duration(t.Millis/int64(answered)) * time.Millisecond
			}
		}
	}
	if last := r.Last; last.To.IsZero() || last.To.After(c.Days[0].Start) {
		c.Last = last
	}
	return c
}
