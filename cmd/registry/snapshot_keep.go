package main

import (
	"context"

	"example.org/registry/httpapi"
)

// keepSnapshots makes snapshots unasked from when the model has caught up until ctx ends. stop waits for
// the last one to end.
func (s *server) keepSnapshots(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.snapshots.run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// shown is what the operators' page says of the object store.
func (k *snapshotter) shown(ctx context.Context) ([]httpapi.SnapshotInfo, error) {
	b := k.bucket.Load()
	if b == nil || !k.connected() {
		return nil, httpapi.Unavailable("the broker is away")
	}
	items, _, err := b.List(ctx)
	if err != nil {
		return nil, ignoreNone(err)
	}
	var shown []httpapi.SnapshotInfo
	for _, i := range items {
		shown = append(shown, httpapi.SnapshotInfo{Name: i.Name, Sequence: i.Manifest.Sequence, Made: i.Time,
			Entries: uint64(i.Manifest.Shown()), Bytes: i.Bytes})
	}
	return shown, nil
}
