package demo

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"time"

	"example.org/registry/events"
)

// Search is a text that matches entries of the demonstration.
const Search = "nitro"

// recorded has the events as they are published on recordedDay, in publishing order, each with "demo"
// in place of its id. To change the demonstration, unpack the file, edit the lines, and run gzip -9n.
//
//go:embed events.ndjson.gz
var recorded []byte

var recordedDay = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// Events returns the events of the demonstration on a day, in publishing order. Two calls for one day
// return the same events; the next day, all times are a day later. An error means that the build is broken.
func Events(day time.Time) (all []events.Event, err error) {
	sinceRecorded := day.UTC().Truncate(24 * time.Hour).Sub(recordedDay)
	unpacked, err := gzip.NewReader(bytes.NewReader(recorded))
	if err != nil {
		return nil, fmt.Errorf("demonstration: %w", err)
	}

	lines := bufio.NewScanner(unpacked)
	for lines.Scan() {
		e, err := events.Decode(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("demonstration, line %d: %w", len(all)+1, err)
		}
		all = append(all, moveEvent(e, sinceRecorded))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("demonstration: %w", err)
	}
	return all, nil
}

// moveEvent returns e with all its times later by d, and with the id that belongs to the new state.
func moveEvent(e events.Event, d time.Duration) events.Event {
	switch data := e.Data.(type) {
	case events.Entry:
		data.ReportedAt = data.ReportedAt.Add(d)
		e.Data = data
	case events.Donation:
		data.CreatedAt = data.CreatedAt.Add(d)
		data.UpdatedAt = data.UpdatedAt.Add(d)
		e.Data = data
	}

	// A revision is a time, too, in milliseconds.
	e.Data = events.Revised(e.Data, events.Revision(e.Data)+d.Milliseconds())
	e.ID = events.StateID(e.Data)
	if !e.Time.IsZero() {
		e.Time = e.Time.Add(d)
	}
	return e
}
