package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	bolt "go.etcd.io/bbolt"

	"example.org/registry/readmodel"
)

// proveFile loads the file at path as Open does, without keeping it: checksums, digest, counts, pages. Want
// is what its meta record must say; shown is how many entries each list shows.
func proveFile(ctx context.Context, path string, want meta, w Work) (shown map[string]int, err error) {
	db, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	sum := newSummer()
	err = db.View(func(tx *bolt.Tx) error {
		var found meta
		err := guard(func() (err error) { found, err = readMeta(tx, sum); return err })
		if err != nil {
			return err
		}
		if !found.same(want) {
			return errors.New("meta record is not the one expected")
		}
		l := &loader{sum: sum, workers: w.workers(), rest: w.Rest, prove: true,
			rerender: found.Render != readmodel.RenderVersion}
		shown, err = l.proveAll(ctx, tx, found)
		return err
	})
	return shown, err
}

func (l *loader) proveAll(ctx context.Context, tx *bolt.Tx, m meta) (map[string]int, error) {
	var d readmodel.Digest
	shown := map[string]int{}
	counts, err := l.run(ctx, tx, func(batch []readmodel.Record) {
		for i := range batch {
			d.Add(batch[i].Digest())
			if batch[i].Shown() {
				shown[string(batch[i].Key.List)]++
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if err := m.matches(counts, d); err != nil {
		return nil, err
	}
	return shown, checkPages(tx)
}

// prove says whether the file at path is the one that m describes, and sound.
func (m Manifest) prove(ctx context.Context, path string, w Work) error {
	found, err := fileMeta(path)
	if err != nil {
		return err
	}
	if err := m.describes(found); err != nil {
		return err
	}
	shown, err := proveFile(ctx, path, found, w)
	if err == nil && !maps.Equal(shown, m.Entries) {
		err = errors.New("manifest is not that of the file: other entries are shown")
	}
	return err
}

// checkPages is for a file every page of which has been read.
func checkPages(tx *bolt.Tx) error {
	var bad error
	for err := range tx.Check() { // to the end, or its goroutine stays
		bad = cmp.Or(bad, err)
	}
	if bad != nil {
		return damage{fmt.Errorf("page structure: %w", bad)}
	}
	return nil
}
