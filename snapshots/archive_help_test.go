package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"
)

// newRand is seeded anew each time; the seed is logged.
func newRand(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// mutate returns a copy of good with something wrong: bits flipped, bytes lost, doubled, swapped or added.
func mutate(rng *rand.Rand, good []byte) []byte {
	b := bytes.Clone(good)
	at := rng.IntN(len(b))
	if rng.IntN(3) == 0 {
		at = rng.IntN(min(len(b), 900)) // the header
	}
	switch rng.IntN(6) {
	case 0:
		b[at] ^= 1 << rng.IntN(8)
	case 1:
		return b[:at]
	case 2:
		return append(b, good[:1+at]...)
	case 3:
		clear(b[at:min(len(b), at+1+rng.IntN(64))])
	case 4:
		return append(b[:at], good[min(len(b), at+1+rng.IntN(4096)):]...)
	case 5:
		b[at] = byte(rng.Uint32())
	}
	return b
}

func packZeros(n int64) (packed []byte, sum string) {
	var out bytes.Buffer
	h := sha256.New()
	w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow))
	if err != nil {
		panic(err)
	}
	if _, err := io.Copy(io.MultiWriter(w, h), &zeros{n}); err != nil {
		panic(err)
	}
	_ = w.Close() // into memory
	return out.Bytes(), hex.EncodeToString(h.Sum(nil))
}

// rewrite changes a stored value under a right checksum.
func rewrite(t *testing.T, s *Store, bucket, key string, change func([]byte) []byte) {
	t.Helper()
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		value, err := s.sum.open(bucket, []byte(key), bytes.Clone(b.Get([]byte(key))))
		if err != nil {
			t.Fatalf("%s %s: %v", bucket, key, err)
		}
		stored := append(make([]byte, sumSize), change(value)...)
		s.sum.seal(bucket, []byte(key), stored)
		return b.Put([]byte(key), stored)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func lstat(t testing.TB, path string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
