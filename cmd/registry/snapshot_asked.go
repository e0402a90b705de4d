package main

import (
	"context"
	"errors"
	"io"

	"example.org/registry/httpapi"
	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

// created is what POST /snapshots answers.
type created struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"` // of the archive
	snapshots.Manifest
}

func createdFrom(i bucket.Item) created {
	return created{Name: i.Name, Bytes: i.Bytes, Manifest: i.Manifest}
}

// Create puts a snapshot at the checkpoint into the object store, for an operator.
func (k *snapshotter) Create(ctx context.Context) (any, error) {
	done, err := k.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	item, err := k.put(ctx)
	if errors.Is(err, bucket.ErrBusy) {
		return nil, httpapi.Refused(err.Error())
	}
	if err != nil {
		k.stats.failed(ctx)
		return nil, err
	}
	return createdFrom(item), nil
}

// Archive makes an archive at the checkpoint that goes to an operator alone.
func (k *snapshotter) Archive(ctx context.Context) (io.ReadCloser, int64, error) {
	done, err := k.begin()
	if err != nil {
		return nil, 0, err
	}
	defer done()
	a, err := k.archive(ctx)
	if err != nil {
		return nil, 0, err
	}
	return archiveReader{a.Reader(), a}, a.Size(), nil
}

type archiveReader struct {
	io.Reader
	io.Closer
}

// Export writes everything that the store holds at the checkpoint.
func (k *snapshotter) Export(ctx context.Context, w io.Writer, begin func()) error {
	done, err := k.begin()
	if err != nil {
		return err
	}
	defer done()
	if err := k.flush(ctx); err != nil {
		return err
	}
	return advised(k.live.now().store.Export(ctx, w, k.work, begin))
}
