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
)

// exportSource is the CloudEvents source of exported events.
const exportSource = "urn:registry:export"

// ExportFailed is the line that ends an export which could not be finished: no event, so that whoever
// publishes what came before it learns that it is not everything.
const ExportFailed = "# export failed: this is not everything\n"

// Export writes everything that the store holds at this moment to w, as ExportFile does. Nothing is
// written before a copy of the store has been proved; begin, if not nil, is called then.
func (s *Store) Export(ctx context.Context, w io.Writer, work Work, begin func()) error {
	path, _, err := s.copy(ctx, work)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer os.Remove(path)
	if begin != nil {
		begin()
	}
	return ExportFile(ctx, path, w)
}

// ExportFile writes the content of the store at path, which nobody has open and which has been proved, to
// w: one CloudEvent a line with an id of its own, in the order of the tables and of the ids in
// them. Published in that order into an empty stream they give a content with the same digest.
func ExportFile(ctx context.Context, path string, w io.Writer) error {
	db, err := openFile(path)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	defer db.Close()
	out := bufio.NewWriterSize(w, 64<<10)
	x := exporter{ctx: ctx, sum: newSummer(), out: out}
	err = guard(func() error { return db.View(x.tables) })
	if err := errors.Join(err, out.Flush()); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

type exporter struct {
	ctx context.Context
	sum summer
	out *bufio.Writer
}

func (x exporter) tables(tx *bolt.Tx) error {
	for _, t := range tables() {
		bucket := tx.Bucket([]byte(t.name))
		if bucket == nil {
			return fmt.Errorf("%s: missing", t.name)
		}
		err := bucket.ForEach(func(k, stored []byte) error {
			if err := x.record(t, k, stored); err != nil {
				return fmt.Errorf("%s: record %.80q: %w", t.name, k, err)
			}
			return x.ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (x exporter) record(t table, k, stored []byte) error {
	value, err := x.sum.open(t.name, k, stored)
	if err != nil {
		return err
	}
	data, _, err := readmodel.DecodeState(t.key(k), value)
	if err != nil {
		return err
	}
	line, err := events.Encode(events.Event{
		ID: events.NewEventID(), Source: exportSource, Type: exportType(t.kind), Data: data,
	})
	if err != nil {
		return err
	}
	_, err = x.out.Write(append(line, '\n'))
	return err
}

// exportType is the event that sets the state of a record of this kind, whatever it was before.
func exportType(k readmodel.Kind) events.Type {
	switch k {
	case readmodel.KindViews:
		return events.TypeViewsCounted
	case readmodel.KindDonation:
		return events.TypeDonationUpdated
	}
	return events.TypeListed
}
