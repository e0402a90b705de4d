package snapshots

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"example.org/registry/events"
	"example.org/registry/readmodel"
)

// ExportFailed is the last line of an export that failed. It is not an event, so publishing the
// incomplete export fails.
const ExportFailed = "# export failed: this is not everything\n"

// Since holds the changes of entries since the archive was made. The zero value means none.
type Since struct {
	// Delisted are the tombstones of entries that have been delisted since, at most one each. They
	// are exported instead of the archive's state of those entries.
	Delisted []readmodel.Tombstone

	// Listed reports whether an entry has been listed since. The archive's tombstone of it is then
	// omitted. If Listed is nil, no entry has been.
	Listed func(events.Subject) bool

	// Newer are states that have changed since. They are exported instead of the archive's, and a
	// removed donation is omitted. Subjects that the archive lacks are ignored.
	Newer map[events.Subject]events.Data
}

// Exported counts the output of an export.
type Exported struct {
	Entries, Views, Donations, Tombstones int

	LeftOut int // entries of the archive that were omitted because they have been delisted since
}

// Export writes the store's current content to w, as function Export does. Nothing is written before
// an archive of the store has been verified; begin, if not nil, is called then.
func (s *Store) Export(ctx context.Context, w io.Writer, cfg ArchiveConfig, begin func()) error {
	a, err := s.Archive(ctx, cfg)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer a.Close()
	r, err := NewReader(a.Reader())
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if begin != nil {
		begin()
	}
	_, err = Export(ctx, r, w, Since{})
	return err
}

// Export writes the content of an archive to w, with the changes of since: one CloudEvent a line,
// each with a new id, by list and entry id, donations last, then the tombstones of since. Published
// in that order into an empty stream, the events give content with the same digest, and the same
// tombstones with their times. If the archive has not been verified before, what was written counts
// only if the error is nil.
func Export(ctx context.Context, r *Reader, w io.Writer, since Since) (Exported, error) {
	e := exporter{out: bufio.NewWriterSize(w, 64<<10), since: since, delisted: map[events.Subject]bool{}}
	for _, t := range since.Delisted {
		e.delisted[t.Subject()] = true
	}
	err := r.read(ctx, ArchiveConfig{}, func(b *batch) error {
		for _, s := range b.states {
			if err := e.record(s); err != nil {
				return err
			}
		}
		return nil
	})
	for i := 0; err == nil && i < len(since.Delisted); i++ {
		err = e.tombstone(since.Delisted[i])
	}
	if err := errors.Join(err, e.out.Flush()); err != nil {
		return e.done, fmt.Errorf("export: %w", err)
	}
	return e.done, nil
}

// Withdrawn returns the entries of an archive that no list may show, in the order of list and entry
// id: the tombstones, and the unverified trusted persons.
func Withdrawn(ctx context.Context, r *Reader) (all []readmodel.Tombstone, err error) {
	err = r.EachState(ctx, func(s State) {
		switch e := s.Data.(type) {
		case events.Delisting:
			all = append(all, s.Tombstone)
		case events.Entry:
			if e.List.Trusted() && !e.Verified {
				all = append(all, readmodel.Tombstone{List: e.List, EntryID: e.EntryID, Sequence: s.Sequence, Hidden: true})
			}
		}
	})
	readmodel.SortTombstones(all)
	return all, err
}

// exporter writes one export.
type exporter struct {
	out      *bufio.Writer
	since    Since
	delisted map[events.Subject]bool // as in since
	done     Exported
}

// record writes a state as an event.
func (e *exporter) record(s State) error {
	switch _, gone := s.Data.(events.Delisting); {
	case gone:
		if e.delisted[s.Subject] || e.since.Listed != nil && e.since.Listed(s.Subject) {
			return nil
		}
		return e.tombstone(s.Tombstone)
	case e.delisted[s.Subject]:
		e.done.LeftOut++
		return nil
	}
	if newer, changed := e.since.Newer[s.Subject]; changed {
		return e.state(newer)
	}
	return e.state(s.Data)
}

// state writes data as the event that sets it.
func (e *exporter) state(data events.Data) error {
	event := events.Event{Type: events.TypeListed, Data: data} // sets the state, whatever it was before
	switch data.(type) {
	case events.DonationRemoval:
		return nil
	case events.Views:
		event.Type = events.TypeViewsCounted
		e.done.Views++
	case events.Donation:
		event.Type = events.TypeDonationUpdated
		e.done.Donations++
	default:
		e.done.Entries++
	}
	return e.write(event)
}

// tombstone writes a tombstone as the delisting that leaves it, with its time.
func (e *exporter) tombstone(t readmodel.Tombstone) error {
	e.done.Tombstones++
	return e.write(events.Event{Type: events.TypeDelisted, Time: t.Time, Data: events.Delisting{List: t.List, EntryID: t.EntryID}})
}

func (e *exporter) write(event events.Event) error {
	event.ID, event.Source = events.NewEventID(), events.ExportSource
	line, err := events.Encode(event)
	if err != nil {
		return err
	}
	_, err = e.out.Write(append(line, '\n'))
	return err
}
