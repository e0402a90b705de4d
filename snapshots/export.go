package snapshots

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"example.org/registry/events"
)

// ExportFailed is the last line of an export that failed. It is not an event, so publishing the
// incomplete export fails.
const ExportFailed = "# export failed: this is not everything\n"

// Exported counts the output of an export.
type Exported struct{ Entries, Views, Donations, Tombstones int }

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
	_, err = Export(ctx, r, w)
	return err
}

// Export writes the content of an archive to w: one CloudEvent a line (events.StateEvent), by list
// and entry id, donations last. Published into any stream, in any order, the events give content
// with the same digest. If the archive has not been verified before, what was written counts only if
// the error is nil.
func Export(ctx context.Context, r *Reader, w io.Writer) (done Exported, err error) {
	out := bufio.NewWriterSize(w, 64<<10)
	err = r.read(ctx, ArchiveConfig{}, func(b *batch) error {
		for _, s := range b.states {
			done.count(s.Data)
			line, err := events.Encode(events.StateEvent(s.Data))
			if err != nil {
				return err
			}
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, out.Flush()); err != nil {
		return done, fmt.Errorf("export: %w", err)
	}
	return done, nil
}

func (e *Exported) count(d events.Data) {
	switch d.(type) {
	case events.Views:
		e.Views++
	case events.Donation:
		e.Donations++
	case events.Entry:
		e.Entries++
	default:
		e.Tombstones++
	}
}
