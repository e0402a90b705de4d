package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"example.org/registry/snapshots"
	"example.org/registry/snapshots/bucket"
)

// bucketFlags say how a command reaches the object store.
type bucketFlags struct {
	NATSURL []string `name:"nats-url" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"Broker with the object store, one or more addresses separated by commas. The default is the embedded broker of a server on this machine." group:"Broker and stream"`
	natsFlags
}

// with connects, calls do, and hangs up.
func (f bucketFlags) with(p *process, do func(context.Context, *bucket.Bucket) error) error {
	if err := checkURLs(f.NATSURL); err != nil {
		return err
	}
	if err := f.natsFlags.check(); err != nil {
		return err
	}
	where := addresses(f.NATSURL)
	nc, err := f.connect("registry snapshot", f.NATSURL)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("broker at %s: %w", where, err)
	}
	return plainly(p.ctx, do(p.ctx, bucket.New(js, bucket.Config{})))
}

// unanswered says which broker a question about the object store was asked of, and what to do about its answer.
func (f bucketFlags) unanswered(err error) error {
	return fmt.Errorf("broker at %s: object store: %w", addresses(f.NATSURL), advised(err))
}

// open calls do with the archive of a file or, where there is none of this name, of the object store.
func (f bucketFlags) open(p *process, name string, do func(context.Context, io.Reader) error) error {
	file, err := os.Open(name)
	if err == nil {
		defer file.Close()
		return plainly(p.ctx, do(p.ctx, file))
	}
	if !errors.Is(err, os.ErrNotExist) || strings.ContainsRune(name, os.PathSeparator) {
		return unusable(name, bare(err))
	}
	return f.with(p, func(ctx context.Context, b *bucket.Bucket) error {
		item, err := b.Find(ctx, name)
		if errors.Is(err, bucket.ErrUnknown) || errors.Is(err, bucket.ErrNone) {
			return fmt.Errorf("%s: no such file, and no such snapshot in the object store; registry snapshot list shows them", printable(name))
		}
		if err != nil {
			return f.unanswered(err)
		}
		archive, err := b.Open(ctx, item)
		if err != nil {
			return unusable(name, err)
		}
		return do(ctx, archive)
	})
}

// unpacked calls do with the proved store file of a snapshot, in a temporary directory.
func (f bucketFlags) unpacked(p *process, name string, do func(path string, m snapshots.Manifest) error) error {
	dir, err := os.MkdirTemp("", "registry-snapshot-")
	if err != nil {
		return fmt.Errorf("temporary directory: %w; set TMPDIR", err)
	}
	defer os.RemoveAll(dir)
	return f.open(p, name, func(ctx context.Context, archive io.Reader) error {
		path := filepath.Join(dir, "registry.db")
		m, err := snapshots.Unpack(ctx, archive, path, snapshots.Work{}, nil)
		if err != nil {
			return unusable(name, err)
		}
		return do(path, m)
	})
}

// unusable says of a snapshot that cannot be read, or not be used, what to do instead.
func unusable(name string, err error) error {
	return fmt.Errorf("%s: %w; %s", printable(name), err, insteadOf(err))
}
