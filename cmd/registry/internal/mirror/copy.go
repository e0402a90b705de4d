package mirror

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"example.org/registry/events"
	"example.org/registry/snapshots"
)

// ErrKept means that another process maintains the copy.
var ErrKept = errors.New("another registry mirror keeps this copy")

// lockWithin bounds the wait for a process that is ending.
const lockWithin = time.Second

// digest is the sum of all entries' hashes modulo 2^128.
type digest struct{ high, low uint64 }

func (d *digest) add(h digest) {
	var carry uint64
	d.low, carry = bits.Add64(d.low, h.low, 0)
	d.high, _ = bits.Add64(d.high, h.high, carry)
}

func (d *digest) sub(h digest) {
	var borrow uint64
	d.low, borrow = bits.Sub64(d.low, h.low, 0)
	d.high, _ = bits.Sub64(d.high, h.high, borrow)
}

func (d digest) String() string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, d.high), d.low))
}

// hashOf returns an entry's part of the digest.
func hashOf(list events.List, entry []byte) digest {
	h := sha256.New()
	h.Write([]byte(list + "\n"))
	h.Write(entry)
	sum := h.Sum(nil)
	return digest{binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])}
}

// state is a copy's position in the feed and its counts and digest.
type state struct {
	Epoch   string // empty until something has been fetched
	Until   uint64
	Seen    uint64 // the highest sequence that any server has reported
	Entries counts
	High    uint64 // of the digest
	Low     uint64
}

func (s state) digest() digest { return digest{s.High, s.Low} }

// copied holds the entries and the state, in a file of bbolt. One goroutine uses it.
type copied struct {
	db    *bbolt.DB
	file  *os.File // the file of db
	state state
}

// The buckets of a store. Keys of entries are the list's index and the id; values are the hash and
// the line of the file.
var (
	entriesBucket = []byte("entries")
	stateBucket   = []byte("state")
	stateKey      = []byte("state 1") // the number changes with the format
)

// openCopy opens the store, or makes a new one if it is missing or unusable.
func openCopy(path string) (*copied, error) {
	c := &copied{}
	options := &bbolt.Options{Timeout: lockWithin, OpenFile: func(path string, flag int, mode os.FileMode) (f *os.File, err error) {
		c.file, err = os.OpenFile(path, flag, mode)
		return c.file, err
	}}
	db, err := bbolt.Open(path, 0o600, options)
	if errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrVersionMismatch) || errors.Is(err, bolterrors.ErrChecksum) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		db, err = bbolt.Open(path, 0o600, options)
	}
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, ErrKept
	}
	if err != nil {
		return nil, err
	}
	c.db = db
	err = db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(stateBucket); b != nil && json.Unmarshal(b.Get(stateKey), &c.state) != nil {
			c.state = state{} // of another format
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return c, nil
}

// close removes the file if nothing has been fetched. It does so while the file is locked:
// afterwards, another process may own it.
func (c *copied) close() (err error) {
	if c.state.Epoch == "" {
		err = os.Remove(c.db.Path())
	}
	return errors.Join(err, c.db.Close())
}

// begin empties the copy for a new epoch.
func (c *copied) begin(epoch string, seen uint64) error {
	return c.update(state{Epoch: epoch, Seen: seen}, func(tx *bbolt.Tx, _ *state) error {
		if tx.Bucket(entriesBucket) != nil {
			if err := tx.DeleteBucket(entriesBucket); err != nil {
				return err
			}
		}
		_, err := tx.CreateBucket(entriesBucket)
		return err
	})
}

// update changes the entries, starting from a state, and saves the resulting state with them in one
// transaction.
func (c *copied) update(s state, do func(*bbolt.Tx, *state) error) error {
	err := c.db.Update(func(tx *bbolt.Tx) error {
		if err := do(tx, &s); err != nil {
			return err
		}
		b, err := tx.CreateBucketIfNotExists(stateBucket)
		if err != nil {
			return err
		}
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return b.Put(stateKey, text)
	})
	if err == nil {
		c.state = s
	}
	return err
}

// apply applies pages. Each must begin where the one before ends.
func (c *copied) apply(pages []page) error {
	return c.update(c.state, func(tx *bbolt.Tx, s *state) error {
		b := tx.Bucket(entriesBucket)
		for _, p := range pages {
			for i := range p.Changes {
				if err := s.apply(b, &p.Changes[i]); err != nil {
					return err
				}
			}
			s.Until, s.Seen = p.Until, max(s.Seen, p.Until, p.sequence)
		}
		return nil
	})
}

func (s *state) apply(b *bbolt.Bucket, c *change) error {
	list, _ := c.List.Index()
	key := append([]byte{byte(list)}, c.EntryID...)
	sum, count := s.digest(), s.Entries.forList(c.List)
	if old := b.Get(key); old != nil {
		sum.sub(digest{binary.BigEndian.Uint64(old), binary.BigEndian.Uint64(old[8:])})
		*count--
	}
	var err error
	if c.Op == "set" {
		h := hashOf(c.List, c.Entry)
		sum.add(h)
		*count++
		reportedAt, _ := json.Marshal(c.ReportedAt) // a string
		value := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, h.high), h.low)
		err = b.Put(key, fmt.Appendf(value, `{"list":%q,"reportedAt":%s,"entry":%s}`+"\n", c.List, reportedAt, c.Entry))
	} else {
		err = b.Delete(key)
	}
	s.High, s.Low = sum.high, sum.low
	return err
}

// eraseFree erases removed entries from the store's free pages.
func (c *copied) eraseFree() (err error) {
	for page := 0; page >= 0 && err == nil; {
		page, err = snapshots.ErasePart(c.db, c.file, page)
	}
	return err
}

// write replaces the file by the copy.
func (c *copied) write(path string) (err error) {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // may be the second call
			_ = os.Remove(part)
		}
	}()
	out := bufio.NewWriterSize(f, 1<<20)
	err = c.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(entriesBucket).ForEach(func(_, value []byte) error {
			_, err := out.Write(value[16:])
			return err
		})
	})
	if err = errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(part, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
