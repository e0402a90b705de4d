package mirror

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"example.org/registry/events"
	"example.org/registry/httpapi/body"
	"example.org/registry/readmodel"
)

// ErrKept means that another process maintains the copy.
var ErrKept = errors.New("another registry mirror keeps this copy")

// lockWithin bounds the wait for a process that is ending.
const lockWithin = time.Second

// state is a copy's position in the feed. FILE.mirror has it as JSON.
type state struct {
	Epoch string `json:"epoch"` // empty until something has been fetched
	Until uint64 `json:"until"`
	Seen  uint64 `json:"seen"` // the highest sequence that any server has reported
	File  string `json:"file"` // SHA-256 of the file with this state
}

// entry is one entry of a copy.
type entry struct {
	hash readmodel.Digest // its part of the digest
	line string           // of the file
}

// copied is a copy in memory. One goroutine uses it.
type copied struct {
	path    string // of the file
	lock    *flock.Flock
	state   state
	entries map[string]entry // by the list's index and the id, which is the order of the file
}

// openCopy locks a copy and reads it from its file. If the file and its state do not fit each
// other, the copy is empty.
func openCopy(ctx context.Context, path string) (_ *copied, err error) {
	c := &copied{path: path, lock: flock.New(path + ".mirror"), entries: map[string]entry{}}
	bounded, cancel := context.WithTimeout(ctx, lockWithin)
	defer cancel()
	if _, err := c.lock.TryLockContext(bounded, 10*time.Millisecond); errors.Is(err, context.DeadlineExceeded) {
		return nil, ErrKept
	} else if err != nil {
		return nil, err
	}
	saved, err := os.ReadFile(c.lock.Path())
	if err == nil && json.Unmarshal(saved, &c.state) == nil {
		err = c.read()
	} else {
		c.state = state{}
	}
	if err != nil {
		return nil, errors.Join(err, c.lock.Close())
	}
	return c, nil
}

// read reads the file, and empties the copy if it is not the file of c.state.
func (c *copied) read() error {
	f, err := os.Open(c.path)
	if errors.Is(err, os.ErrNotExist) {
		c.state = state{}
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(f, sum), 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" && c.state.File == hex.EncodeToString(sum.Sum(nil)) {
			return nil
		}
		var ch change
		if err == io.EOF || err == nil && (json.Unmarshal([]byte(line), &ch) != nil || ch.checkEntry() != nil) {
			c.state, c.entries = state{}, map[string]entry{}
			return nil
		}
		if err != nil {
			return err
		}
		c.entries[ch.key()] = entry{ch.hash(), line}
	}
}

// close removes the file of the state if nothing has been written. It does so while the file is
// locked: afterwards, another process may own it.
func (c *copied) close() (err error) {
	if info, statErr := os.Stat(c.lock.Path()); statErr == nil && info.Size() == 0 {
		err = os.Remove(c.lock.Path())
	}
	return errors.Join(err, c.lock.Close())
}

// begin empties the copy for a new epoch.
func (c *copied) begin(epoch string, seen uint64) {
	c.state, c.entries = state{Epoch: epoch, Seen: seen}, map[string]entry{}
}

// apply applies a page, which begins where the last one ended.
func (c *copied) apply(p page) {
	for i := range p.Changes {
		ch := &p.Changes[i]
		if ch.Op == "remove" {
			delete(c.entries, ch.key())
			continue
		}
		reportedAt, _ := json.Marshal(ch.ReportedAt) // a string
		c.entries[ch.key()] = entry{ch.hash(), fmt.Sprintf(`{"list":%q,"reportedAt":%s,"entry":%s}`+"\n", ch.List, reportedAt, ch.Entry)}
	}
	c.state.Until, c.state.Seen = p.Until, max(c.state.Seen, p.Until, p.sequence)
}

// sum returns the counts and the digest of the entries, which a server reports of the same ones.
func (c *copied) sum() (n body.Counts, digest readmodel.Digest) {
	for key, e := range c.entries {
		*n.Of(events.Lists()[key[0]])++
		digest.Add(e.hash)
	}
	return n, digest
}

// key orders entries by list, then by id.
func (c *change) key() string {
	list, _ := c.List.Index()
	return string(rune(list)) + c.EntryID
}

// hash returns the entry's part of the digest (httpapi/CONTRACT.md#changes).
func (c *change) hash() readmodel.Digest {
	sum := sha256.Sum256(append([]byte(c.List+"\n"), c.Entry...))
	return readmodel.Digest(sum[:len(readmodel.Digest{})])
}

// write replaces the file by the copy, then its state.
func (c *copied) write() (err error) {
	part := c.path + ".part" // of a process that was killed, or a link that somebody put there: not followed
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // may be the second call
			_ = os.Remove(part)
		}
	}()
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<20)
	for _, key := range slices.Sorted(maps.Keys(c.entries)) {
		_, _ = out.WriteString(c.entries[key].line) // Flush reports the error
	}
	if err = errors.Join(out.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(part, c.path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(c.path))
	if err != nil {
		return err
	}
	if err = errors.Join(dir.Sync(), dir.Close()); err != nil {
		return err
	}
	c.state.File = hex.EncodeToString(sum.Sum(nil))
	text, err := json.Marshal(c.state)
	if err != nil {
		return err
	}
	return os.WriteFile(c.lock.Path(), text, 0o600)
}
