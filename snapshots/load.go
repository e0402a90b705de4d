package snapshots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
)

// loadModel returns a new model of the store.
func (s *Store) loadModel(ctx context.Context) (*readmodel.Model, error) {
	meta := s.Meta()
	model := readmodel.New()
	model.BeginBulk()
	model.Load(nil, meta.Sequence) // sets the checkpoint, even if there are no states
	err := s.view(func(tx *bolt.Tx) error {
		return loadStates(ctx, tx.Bucket(statesBucket).Cursor(), model, meta.Sequence)
	})
	if err != nil {
		return nil, err
	}

	if digest := model.Digest().String(); digest != meta.Digest {
		return nil, fmt.Errorf("the digest of the states is %s, not %s", digest, meta.Digest)
	}

	model.EndBulk()
	return model, nil
}

// batchSize is the number of states that are decoded at once.
const batchSize = 4096

// pair is a key and a value of the file. Their memory belongs to the transaction.
type pair struct{ key, value []byte }

// loadStates loads the states into the model, in the order of the keys. It loads one batch while all CPUs decode the
// next batch.
func loadStates(ctx context.Context, cursor *bolt.Cursor, model *readmodel.Model, checkpoint uint64) error {
	key, value := cursor.First()
	var previous []readmodel.Record // the decoded batch that is not loaded yet
	for key != nil || len(previous) > 0 {
		// Collect a batch. After the last key, the batch is empty, and only the previous batch is loaded.
		var batch []pair
		for key != nil && len(batch) < batchSize {
			last := pair{key, value}
			batch = append(batch, last)
			key, value = cursor.Next()
			if key != nil && bytes.Compare(last.key, key) >= 0 { // in a damaged file the cursor may go in circles
				return errors.New("keys are out of order")
			}
		}

		// Load the previous batch while this batch is decoded.
		loaded := make(chan struct{})
		go func() {
			defer close(loaded)
			model.Load(previous, checkpoint)
		}()

		decoded, err := decodeBatch(batch)
		<-loaded
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		previous = decoded
	}
	return nil
}

// decodeBatch decodes and renders states on all CPUs.
func decodeBatch(batch []pair) ([]readmodel.Record, error) {
	records := make([]readmodel.Record, len(batch))
	size := len(batch)/runtime.GOMAXPROCS(0) + 1
	var group errgroup.Group
	for from := 0; from < len(batch); from += size {
		to := min(from+size, len(batch))
		group.Go(func() error {
			return fault.Catch(func() error { return decodeStates(batch[from:to], records[from:to]) })
		})
	}
	return records, group.Wait()
}

func decodeStates(batch []pair, records []readmodel.Record) error {
	renderer := readmodel.NewRenderer()
	for i, stored := range batch {
		state, err := decodeStored(stored.value)
		if err != nil {
			return fmt.Errorf("%s: %w", maskKey(stored.key), err)
		}

		e, err := events.Decode(state.Line)
		if err != nil {
			return fmt.Errorf("%s: %w", maskKey(stored.key), err)
		}
		if !bytes.Equal(keyOf(e.Data.Subject()), stored.key) {
			return fmt.Errorf("%s: the state of another subject", maskKey(stored.key))
		}
		records[i] = renderer.Render(state.Sequence, e.Data)
	}
	return nil
}

// maskKey returns a key for an error, without the id of a donation.
func maskKey(key []byte) string {
	if bytes.HasPrefix(key, []byte(donationsPrefix)) {
		return "a donation"
	}
	return fmt.Sprintf("%.80q", key)
}
