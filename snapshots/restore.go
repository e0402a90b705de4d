package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"example.org/registry/events"
	"example.org/registry/events/stream"
)

// restorePart is the number of states that one transaction of a restore writes.
const restorePart = 20_000

// Restore makes a store at path from a snapshot. Once the whole snapshot is read and checked, the new store replaces
// any store at path in one step, and the old one has the name path + ReplacedSuffix. The caller has locked the directory.
func Restore(ctx context.Context, from io.Reader, path string) (h Header, err error) {
	temporary := path + restoringSuffix
	if err := os.RemoveAll(temporary); err != nil {
		return h, err
	}

	s, err := openStore(temporary)
	if err != nil {
		return h, fmt.Errorf("%w; %s", err, findRemedy(err))
	}

	h, err = s.fillFrom(ctx, from)
	err = errors.Join(err, s.Close())
	if err == nil {
		err = replaceStore(temporary, path)
	}
	if err != nil {
		return h, errors.Join(err, os.RemoveAll(temporary))
	}
	return h, nil
}

// replaceStore renames the store at fresh to path. The old store, if there is one, first gets a second name, and keeps
// it: there is a store at path at any time.
func replaceStore(fresh, path string) error {
	if _, err := os.Lstat(path); err == nil {
		aside := path + ReplacedSuffix
		if err := errors.Join(os.RemoveAll(aside), os.Link(path, aside)); err != nil {
			return err
		}
	}
	return RenameDurably(fresh, path)
}

// fillFrom saves the states of a snapshot, part by part. Only the last transaction writes the snapshot's meta record.
// Until then the saved digest does not match the states, so Open refuses the store.
func (s *Store) fillFrom(ctx context.Context, from io.Reader) (h Header, err error) {
	part := Commit{States: map[events.Subject]State{}, Meta: s.Meta()}
	h, err = Read(from, func(sequence uint64, e events.Event) error {
		line, err := EncodeState(e.Data)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		part.States[e.Data.Subject()] = State{sequence, line}
		if len(part.States) < restorePart {
			return nil
		}

		err = s.Save(part)
		clear(part.States)
		return err
	})
	if err != nil {
		return h, err
	}

	part.Meta = h.Meta
	return h, s.Save(part)
}

// Bootstrap makes a store at path from the newest readable snapshot of the stream's registry. id is the stream's
// identity, and all is from List. If the registry has no snapshot, Bootstrap does nothing; if none of its snapshots is
// readable, Bootstrap fails. A snapshot with an unreadable header may be the registry's, and counts as such.
func (b *Bucket) Bootstrap(ctx context.Context, all []Object, id stream.Identity, path string, log *slog.Logger) error {
	var unreadable error
	for _, o := range all {
		if o.Err == nil && !id.Related(o.Header.Identity) {
			log.Info("passing over a snapshot of another registry", "name", o.Name)
			continue
		}

		began := time.Now()
		err := b.restoreObject(ctx, o, path)
		if err == nil {
			log.Info("starting from a snapshot", "name", o.Name, "checkpoint", o.Header.Sequence, "digest", o.Header.Digest,
				"took", time.Since(began).Round(time.Millisecond).String())
			return nil
		}
		log.Warn("snapshot cannot be used; trying an older one", "name", o.Name, "error", err)
		unreadable = errors.Join(unreadable, fmt.Errorf("%s: %w", o.Name, err))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return unreadable
}

func (b *Bucket) restoreObject(ctx context.Context, o Object, path string) error {
	if o.Err != nil {
		return o.Err
	}

	from, err := b.Open(ctx, o.Name)
	if err != nil {
		return err
	}

	_, err = Restore(ctx, from, path)
	return err
}
