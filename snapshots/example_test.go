package snapshots_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/snapshots"
)

// What is saved in one transaction is what the next process loads.
func Example() {
	if err := saveAndLoad(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// saved up to 0
	// saved up to 7
	// 1 entry, the same content: true
}

func saveAndLoad() error {
	dir, err := os.MkdirTemp("", "registry-example")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cfg := snapshots.Config{Path: filepath.Join(dir, "registry.db")}
	store, model, err := snapshots.Open(context.Background(), cfg)
	if err != nil {
		return err
	}
	fmt.Println("saved up to", store.Checkpoint().Sequence)

	records := []readmodel.Record{readmodel.NewRenderer().Render(7, events.Entry{Revision: 1, List: events.Scammers, EntryID: "66f2c0ffee",
		ChatID: "900000000000000001", Name: "Jan Oszust", Verified: true, ReportID: "R-2026-17"})}
	model.Apply(records, 7)
	digest := model.Digest()
	err = store.Save(readmodel.Commit{Records: records, Checkpoint: readmodel.Checkpoint{Sequence: 7}, Digest: digest})
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}

	store, model, err = snapshots.Open(context.Background(), cfg)
	if err != nil {
		return err
	}
	defer store.Close()
	fmt.Println("saved up to", store.Checkpoint().Sequence)
	fmt.Println(model.View().NumEntries(events.Scammers), "entry, the same content:", model.Digest() == digest)
	return nil
}
