package main

import (
	"context"
	"fmt"
	"time"

	"example.org/registry/httpapi"
	"example.org/registry/snapshots/bucket"
)

// put makes an archive and puts it into the object store, and then erases what is too many there.
// Whoever calls it has begun.
func (k *snapshotter) put(ctx context.Context) (bucket.Item, error) {
	b := k.bucket.Load()
	if b == nil || !k.connected() {
		return bucket.Item{}, httpapi.Unavailable("the broker is away, and with it the object store; snapshot create --output FILE does without")
	}
	began := time.Now()
	if err := b.Create(ctx); err != nil {
		return bucket.Item{}, fmt.Errorf("object store: %w", advised(err))
	}
	ctx, lock, err := b.Lock(ctx)
	if err != nil {
		return bucket.Item{}, fmt.Errorf("object store: lock: %w", advised(err))
	}
	defer lock.Release()
	a, err := k.archive(ctx)
	if err != nil {
		return bucket.Item{}, because(ctx, err)
	}
	defer a.Close()
	item, err := b.Put(ctx, a.Manifest, a.Reader())
	if err != nil {
		return bucket.Item{}, fmt.Errorf("object store: %w", advised(because(ctx, err)))
	}
	k.stats.made(item, time.Since(began))
	k.log.Info("snapshot made", "name", item.Name, "sequence", item.Manifest.Sequence, "digest", item.Manifest.Digest,
		"bytes", item.Bytes, "took", time.Since(began).Round(time.Millisecond).String())
	k.tidy(ctx, b, item)
	return item, nil
}

// because prefers what ended ctx to what it led to.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// tidy erases old snapshots, and what was left of unfinished ones. That it fails is no reason not to have
// made one.
func (k *snapshotter) tidy(ctx context.Context, b *bucket.Bucket, newest bucket.Item) {
	gone, err := b.Prune(ctx, newest.Manifest.Stream, newest.Manifest.StreamEpoch, k.cfg.keep)
	if err != nil {
		k.log.Warn("old snapshots were not erased", "error", err)
	}
	left, err := b.Clean(ctx)
	if err != nil {
		k.log.Warn("what is left of unfinished snapshots was not erased", "error", err)
	}
	if len(gone)+left > 0 {
		k.log.Info("old snapshots erased", "names", gone, "unfinished", left)
	}
}
