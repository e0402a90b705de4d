package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/projector/lineage"
	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

// keep is how many snapshots stay.
const keep = 3

// snapshot puts a snapshot of the store into the bucket, as cmd/registry does, and judges it: R13.
// An error is the broker's.
func (w *world) snapshot() error {
	pr := w.server
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := bucket.New(pr.js, bucket.Config{})
	if err := b.Create(ctx); err != nil {
		return err
	}
	a, err := pr.store.Archive(ctx, snapshots.ArchiveConfig{TempDir: w.dir})
	w.must(err)
	defer a.Close()
	o, err := b.Put(ctx, a.Manifest, a.Reader())
	if err != nil {
		return fmt.Errorf("put: %w", err)
	}
	w.tally.hit("snapshot put")
	w.say("snapshot %s put", o.Name)
	w.checkSnapshot(w.broker.js, o) // past the wire
	if _, err := b.Prune(ctx, o, keep); err != nil {
		return err
	}
	w.checkSnapshot(w.broker.js, o) // past the wire
	_, err = b.RemoveOrphans(ctx)
	return err
}

// newestSnapshot is the one with the highest sequence.
func (w *world) newestSnapshot() (bucket.Object, error) {
	all, _, err := bucket.New(w.broker.js, bucket.Config{}).List(context.Background())
	if err != nil || len(all) == 0 {
		return bucket.Object{}, cmp.Or(err, bucket.ErrNotFound)
	}
	return slices.MaxFunc(all, func(a, b bucket.Object) int { return cmp.Compare(a.Manifest.Sequence, b.Manifest.Sequence) }), nil
}

// checkSnapshot reads a snapshot that was put: it must be there, and good.
func (w *world) checkSnapshot(js jetstream.JetStream, o bucket.Object) {
	ctx := context.Background()
	b := bucket.New(js, bucket.Config{})
	found, err := b.Find(ctx, o.Name)
	if err != nil {
		w.violation("R13: the snapshot %s that was put: %v", o.Name, err)
		return
	}
	r, err := b.Open(ctx, found)
	if err != nil {
		w.violation("R13: the snapshot %s cannot be opened: %v", o.Name, err)
		return
	}
	archive, err := snapshots.NewReader(r)
	if err == nil {
		err = archive.Verify(ctx)
	}
	if err != nil {
		w.violation("R13: the snapshot %s is not good: %v", o.Name, err)
	} else if archive.Manifest.Digest != o.Manifest.Digest {
		w.violation("R13: the snapshot %s has another digest", o.Name)
	}
}

// bootstrap makes the store from the newest snapshot that the stream continues, if any.
func (w *world) bootstrap(ctx context.Context, js jetstream.JetStream) error {
	b := bucket.New(js, bucket.Config{})
	objects, _, err := b.List(ctx)
	if err != nil {
		w.say("no bucket: %v", err)
		return nil
	}
	slices.SortStableFunc(objects, func(a, b bucket.Object) int { return cmp.Compare(b.Manifest.Sequence, a.Manifest.Sequence) })
	for _, o := range objects {
		if o.Err != nil || !lineage.Share(o.Manifest.Histories, []string{w.epoch()}) {
			continue
		}
		r, err := b.Open(ctx, o)
		if err != nil {
			continue
		}
		archive, err := snapshots.NewReader(r)
		if err == nil {
			_, err = snapshots.Restore(ctx, archive, snapshots.RestoreConfig{Path: w.storePath()})
		}
		if err == nil || errors.Is(err, snapshots.ErrNotSynced) {
			w.tally.hit("snapshot restored")
			w.say("restored from %s", o.Name)
			return nil
		}
	}
	return nil
}
