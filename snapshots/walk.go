package snapshots

import (
	"context"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// chunkSize is how many records travel from goroutine to goroutine at once.
const chunkSize = 256

// chunk is a run of records of one table. Keys and values are memory of the file's map.
type chunk struct {
	table table
	pairs []pair
}

type pair struct{ key, stored []byte }

// walk sends every record of every table and counts them.
func walk(ctx context.Context, tx *bolt.Tx, out chan<- chunk, counts map[string]int) error {
	for _, t := range tables() {
		bucket := tx.Bucket([]byte(t.name))
		if bucket == nil {
			return fmt.Errorf("%s: missing", t.name)
		}
		n, err := walkTable(ctx, bucket, t, out)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		counts[t.name] = n
	}
	return nil
}

func walkTable(ctx context.Context, bucket *bolt.Bucket, t table, out chan<- chunk) (n int, err error) {
	var last []byte
	pairs := make([]pair, 0, chunkSize)
	cursor := bucket.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		if n > 0 && string(k) <= string(last) {
			return n, errors.New("keys out of order") // and a walk in circles ends here
		}
		last = k
		n++
		pairs = append(pairs, pair{k, v})
		if len(pairs) < chunkSize {
			continue
		}
		if err := send(ctx, out, chunk{t, pairs}); err != nil {
			return n, err
		}
		pairs = make([]pair, 0, chunkSize)
	}
	return n, send(ctx, out, chunk{t, pairs})
}

func send[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
