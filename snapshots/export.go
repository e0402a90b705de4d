package snapshots

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// ExportFailed is the last line of an export that failed. It is not an event, so publishing the
// incomplete export fails.
const ExportFailed = "# export failed: this is not everything\n"

// Since holds the changes of entries since the exported file was made. The zero value means none.
type Since struct {
	// Delisted are the tombstones of entries that have been delisted since, at most one each. They
	// are exported instead of the file's state of those entries.
	Delisted []readmodel.Tombstone

	// Listed reports whether an entry has been listed since. The file's tombstone of it is then
	// omitted. If Listed is nil, no entry has been.
	Listed func(events.Subject) bool

	// Newer are states that have changed since. They are exported instead of the file's, and a
	// removed donation is omitted. Subjects that the file lacks are ignored.
	Newer map[events.Subject]events.Data
}

// Exported counts the output of an export.
type Exported struct {
	Entries, Views, Donations, Tombstones int

	LeftOut int // entries of the file that were omitted because they have been delisted since
}

// Export writes the store's current content to w, as ExportFile does. Nothing is written before a
// copy of the store has been verified; begin, if not nil, is called then.
func (s *Store) Export(ctx context.Context, w io.Writer, cfg ArchiveConfig, begin func()) error {
	path, _, err := s.copy(ctx, cfg)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer os.Remove(path)
	if begin != nil {
		begin()
	}
	_, err = ExportFile(ctx, path, w, Since{})
	return err
}

// ExportFile writes the content of the store at path to w, with the changes of since: one
// CloudEvent a line, each with a new id, in the order of the tables and of the ids in them,
// tombstones last. Published in that order into an empty stream, the events give content with the
// same digest, and the same tombstones with their times. The file must have been verified, and must
// not be open.
func ExportFile(ctx context.Context, path string, w io.Writer, since Since) (Exported, error) {
	e := exporter{out: bufio.NewWriterSize(w, 64<<10), since: since, delisted: map[events.Subject]bool{}}
	for _, t := range since.Delisted {
		e.delisted[t.Subject()] = true
	}
	err := readTables(ctx, path, e.record)
	for i := 0; err == nil && i < len(since.Delisted); i++ {
		err = e.tombstone(since.Delisted[i])
	}
	if err := errors.Join(err, e.out.Flush()); err != nil {
		return e.done, fmt.Errorf("export: %w", err)
	}
	return e.done, nil
}

// Withdrawn returns the entries of the store at path that no list may show, in the order of list
// and entry id: the tombstones, and the unverified trusted persons. The file must have been
// verified, and must not be open.
func Withdrawn(ctx context.Context, path string) (all []readmodel.Tombstone, err error) {
	err = EachState(ctx, path, func(k events.Subject, sequence uint64, data events.Data, gone readmodel.Tombstone) {
		switch e := data.(type) {
		case events.Delisting:
			all = append(all, gone)
		case events.Entry:
			if e.List.Trusted() && !e.Verified {
				all = append(all, readmodel.Tombstone{List: k.List, EntryID: k.ID, Sequence: sequence, Hidden: true})
			}
		}
	})
	readmodel.SortTombstones(all)
	return all, err
}

// EachState calls take with every record of the store at path: its data and the sequence of its
// last change. For a tombstone, the data is an events.Delisting, and gone is the tombstone. The
// file must have been verified, and must not be open.
func EachState(ctx context.Context, path string, take func(k events.Subject, sequence uint64, data events.Data, gone readmodel.Tombstone)) error {
	err := readTables(ctx, path, func(t table, k, value []byte) error {
		subject := t.key(k)
		if t.tombstones {
			gone, err := readmodel.DecodeTombstone(subject, value)
			if err == nil {
				take(subject, gone.Sequence, events.Delisting{List: gone.List, EntryID: gone.EntryID}, gone)
			}
			return err
		}
		data, _, err := readmodel.DecodeState(subject, value)
		if err != nil {
			return err
		}
		sequence, err := readmodel.DecodeSequence(subject, value)
		if err == nil {
			take(subject, sequence, data, readmodel.Tombstone{})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// readTables calls take with every record of the store at path.
func readTables(ctx context.Context, path string, take func(t table, k, value []byte) error) error {
	db, err := openToRead(path)
	if err != nil {
		return err
	}
	defer db.Close()
	return fault.Catch(func() error {
		return db.View(func(tx *bolt.Tx) error {
			for _, t := range tables() {
				if err := readTable(ctx, tx, t, take); err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
			}
			return nil
		})
	})
}

func readTable(ctx context.Context, tx *bolt.Tx, t table, take func(t table, k, value []byte) error) error {
	bucket, err := t.bucket(tx)
	if err != nil {
		return err
	}
	return bucket.ForEach(func(k, stored []byte) error {
		value, err := unseal(t.name, k, stored)
		if err == nil {
			err = take(t, k, value)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.record(k), err)
		}
		return ctx.Err()
	})
}

// exporter writes one export.
type exporter struct {
	out      *bufio.Writer
	since    Since
	delisted map[events.Subject]bool // as in since
	done     Exported
}

// record writes the record k of the table t as an event.
func (e *exporter) record(t table, k, value []byte) error {
	subject := t.key(k)
	switch {
	case t.tombstones:
		gone, err := readmodel.DecodeTombstone(subject, value)
		if err != nil || e.delisted[subject] || e.since.Listed != nil && e.since.Listed(subject) {
			return err
		}
		return e.tombstone(gone)
	case t.kind == events.KindEntry && e.delisted[subject]:
		e.done.LeftOut++
		return nil
	}
	if newer, changed := e.since.Newer[subject]; changed {
		return e.state(newer)
	}
	data, _, err := readmodel.DecodeState(subject, value)
	if err != nil {
		return err
	}
	return e.state(data)
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
