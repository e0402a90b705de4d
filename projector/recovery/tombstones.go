package recovery

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"example.org/registry/events"
	"example.org/registry/projector/lineage"
	"example.org/registry/readmodel"
)

// Tombstones is the output of registry tombstones: every known removal, without names.
type Tombstones struct {
	Removals  []events.Data // Delisting and DonationRemoval, by subject
	Histories []string      // all that they belong to
	Time      time.Time     // when they were read
}

// tombstonesEnd is the last line. Without it the file may be incomplete.
type tombstonesEnd struct {
	End       bool      `json:"end"`
	Count     int       `json:"count"`
	Histories []string  `json:"histories"`
	Time      time.Time `json:"time"`
}

// IsTombstonesEnd reports whether a line is the last one of registry tombstones.
func IsTombstonesEnd(line []byte) bool {
	_, is := tombstonesEndOf(line)
	return is
}

func tombstonesEndOf(line []byte) (end tombstonesEnd, is bool) {
	if !bytes.HasPrefix(line, []byte(`{"end":true,`)) {
		return end, false
	}
	err := json.Unmarshal(line, &end)
	return end, err == nil
}

// Withdrawal returns the removal that a state amounts to on the lists: the state itself if it is a
// removal; of an unverified trusted person a delisting with the revision of that state; nil for any other state.
func Withdrawal(d events.Data) events.Data {
	switch d := d.(type) {
	case events.Delisting, events.DonationRemoval:
		return d
	case events.Entry:
		if d.List.Trusted() && !d.Verified {
			return events.Delisting{List: d.List, EntryID: d.EntryID, Revision: d.Revision}
		}
	}
	return nil
}

// Add adds what an older file has of the same history, which stays: an event that arrives late may be
// older still. The error says that the file is of another one.
func (t *Tombstones) Add(older Tombstones) error {
	if !lineage.Share(t.Histories, older.Histories) {
		return errors.New("it is of another registry, or of a history that this one does not follow")
	}
	all := States{}
	for _, d := range slices.Concat(older.Removals, t.Removals) {
		all.Add(readmodel.State{Data: d})
	}
	merged := slices.Collect(maps.Values(all))
	readmodel.SortStates(merged)
	t.Removals = nil
	for _, s := range merged {
		t.Removals = append(t.Removals, s.Data)
	}
	t.Histories = follow(events.HistoryNew, 0, t.Histories, older.Histories).Follows
	if older.Time.After(t.Time) {
		t.Time = older.Time
	}
	return nil
}

// Write writes one CloudEvent a line, then the last line.
func (t Tombstones) Write(to io.Writer) error {
	out := bufio.NewWriterSize(to, 64<<10)
	for _, d := range t.Removals {
		line, err := events.Encode(events.StateEvent(d))
		if err != nil {
			return err
		}
		_, _ = out.Write(append(line, '\n')) // the writer keeps its error for Flush
	}
	histories := slices.Clone(t.Histories)
	if histories == nil {
		histories = []string{}
	}
	if err := json.NewEncoder(out).Encode(tombstonesEnd{true, len(t.Removals), histories, t.Time}); err != nil {
		return err
	}
	return out.Flush()
}

// ReadTombstones reads what Write wrote, to its end. The error names the line.
func ReadTombstones(from io.Reader) (t Tombstones, err error) {
	lines, n, ended := bufio.NewScanner(from), 0, false
	lines.Buffer(nil, 512<<10) // the last one has up to 1,000 histories
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		switch {
		case len(line) == 0:
			continue
		case ended:
			return t, fmt.Errorf("line %d: after the end", n)
		}
		if end, is := tombstonesEndOf(line); is {
			if end.Count != len(t.Removals) {
				return t, fmt.Errorf("line %d: the end of %d removals, after %d", n, end.Count, len(t.Removals))
			}
			t.Histories, t.Time, ended = end.Histories, end.Time, true
			continue
		}
		e, err := events.Decode(line)
		if err != nil {
			return t, fmt.Errorf("line %d: %w", n, err)
		}
		if !e.Type.Removes() {
			return t, fmt.Errorf("line %d: not a removal", n)
		}
		t.Removals = append(t.Removals, e.Data)
	}
	if err := lines.Err(); err != nil {
		return t, fmt.Errorf("line %d: %w", n+1, err)
	}
	if !ended {
		return t, errors.New("its end is missing")
	}
	return t, nil
}
