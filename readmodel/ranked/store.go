package ranked

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
)

// format is the version of what a document holds and of the analysis. An index of another one is made anew.
const format = 2

// Identity tells what an index was made from. An index of another identity is made anew.
type Identity struct {
	StreamEpoch string `json:"streamEpoch"`
	DataSet     string `json:"dataSet"` // of the store (package snapshots): new at every rebuild and restore
}

// state is what an index says about itself. It is in every batch, so that it is true of the documents whatever batch
// was the last to reach the disk.
type state struct {
	Format     int    `json:"format"`
	Render     uint32 `json:"render"`     // readmodel.RenderVersion
	Projection uint32 `json:"projection"` // readmodel.ProjectionVersion
	Identity
	Complete bool   `json:"complete"` // every entry was in the index once
	Sequence uint64 `json:"sequence"` // up to which every change is in it
	Digest   string `json:"digest"`   // of the read model at Sequence
}

func newState(id Identity) state {
	return state{Format: format, Render: readmodel.RenderVersion, Projection: readmodel.ProjectionVersion, Identity: id}
}

const stateKey = "registry"

// encode returns the state as it is stored: JSON after its checksum.
func (s *state) encode() []byte {
	text, _ := json.Marshal(s) // of numbers and strings
	return append(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(text)), text...)
}

func decodeState(b []byte) (s state, err error) {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != crc32.ChecksumIEEE(b[4:]) {
		return s, errors.New("what it says about itself is damaged or missing")
	}
	err = json.Unmarshal(b[4:], &s)
	return s, err
}

// The bounds of a disk that answers.
const (
	// lockedFor is how long another process may keep the directory.
	lockedFor = 2 * time.Second
	// maxUnpersisted is how many batches may be in memory alone.
	maxUnpersisted = 8
)

// store is an open index of bleve. One goroutine writes; the snapshots that it gives may be read by any.
type store struct {
	scorch *scorch.Scorch
	queue  *index.AnalysisQueue
	merges chan struct{} // closed: merges may begin
	failed chan error    // what bleve's own goroutines met; holds the first
	at     func(string) error

	merging     atomic.Pointer[time.Time] // when the present merge began; nil: none is under way
	merged      atomic.Bool               // since the last batch: the disk still has what was merged
	unpersisted atomic.Int64              // batches that are in memory alone
	governor    *governor
	hurrying    chan struct{} // closed: nothing is paid for any more
	hurry       func()
	persisted   chan struct{} // holds one: a batch has reached the disk
}

// openStore opens the index in dir, or makes an empty one. It verifies the checksum of every file. at is called at points
// where tests fail or hang.
func openStore(dir string, g *governor, at func(string) error) (s *store, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	damaged, err := damagedFiles(dir)
	if err != nil {
		return nil, err
	}
	s = &store{
		queue: index.NewAnalysisQueue(1), merges: make(chan struct{}),
		failed: make(chan error, 1), persisted: make(chan struct{}, 1), at: at, governor: g, hurrying: make(chan struct{}),
	}
	s.hurry = sync.OnceFunc(func() { close(s.hurrying) })
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("opening: %v", p)
		}
		if err != nil {
			s.close()
			s = nil
		}
	}()
	if s.scorch, err = s.newScorch(dir); err != nil {
		return s, err
	}
	if err = s.scorch.Open(); err != nil {
		s.scorch = nil // it has closed itself, and cannot be closed again
		return s, fmt.Errorf("opening: %w", err)
	}
	snapshot, err := s.snapshot()
	if err != nil {
		return s, err
	}
	defer snapshot.Close()
	for _, seg := range snapshot.Segments() {
		if p, ok := seg.Segment().(segment.PersistedSegment); ok && damaged[filepath.Base(p.Path())] {
			return s, fmt.Errorf("%s is damaged", filepath.Base(p.Path()))
		}
	}
	close(s.merges)
	return s, nil
}

// registering guards bleve's tables of callbacks, which NewScorch reads. They are global.
var registering sync.Mutex

// newScorch makes an index whose goroutines report to the store.
func (s *store) newScorch(dir string) (*scorch.Scorch, error) {
	registering.Lock()
	defer registering.Unlock()
	const name = "registry"
	scorch.RegistryEventCallbacks[name], scorch.RegistryAsyncErrorCallbacks[name] = s.event, s.fail
	registerSegments()
	defer func() {
		delete(scorch.RegistryEventCallbacks, name)
		delete(scorch.RegistryAsyncErrorCallbacks, name)
	}()
	made, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path": dir, "bolt_timeout": lockedFor.String(), "unsafe_batch": true, "numSnapshotsToKeep": 1,
		"eventCallbackName": name, "asyncErrorCallbackName": name,
		"forceSegmentType": segmentType, "forceSegmentVersion": segmentVersion, "segmentConfig": map[string]any{storeKey: s},
		"scorchPersisterOptions": map[string]any{"PersisterNapTimeMSec": 100, "PersisterNapUnderNumFiles": 300},
		"scorchMergePlanOptions": map[string]any{
			"MaxSegmentsPerTier": 8, "SegmentsPerMergeTask": 8, "MaxSegmentSize": 5_000_000, "TierGrowth": 8.0,
			"FloorSegmentSize": 512, "ReclaimDeletesWeight": 2.0,
		},
	}, s.queue)
	if err != nil {
		return nil, fmt.Errorf("bleve: %w", err)
	}
	return made.(*scorch.Scorch), nil
}

func (s *store) fail(err error, _ string) {
	select {
	case s.failed <- err:
	default:
	}
}

// meter returns a meter for a merge.
func (s *store) meter() meter {
	return meter{governor: s.governor, done: s.hurrying, beat: func() {
		if s.merging.Load() != nil { // else bleve merges what is in memory, to write it
			s.merging.Store(new(time.Now()))
		}
	}}
}

// event lets no merge begin before the files have been verified, and notes when one begins and ends.
func (s *store) event(e scorch.Event) bool {
	switch e.Kind {
	case scorch.EventKindPreMergeCheck:
		<-s.merges
		s.merging.Store(new(time.Now()))
	case scorch.EventKindMergeTaskIntroductionStart:
		_ = cmp.Or(s.at("merged"), failpoint.Hit("ranked/merged")) // to die or hang at
	case scorch.EventKindMergeTaskIntroduction:
		s.merged.Store(true)
	case scorch.EventKindMergerProgress:
		s.merging.Store(nil)
	}
	return true
}

// snapshot returns the index as it is now. The caller closes it.
func (s *store) snapshot() (*scorch.IndexSnapshot, error) {
	r, err := s.scorch.Reader()
	if err != nil {
		return nil, fmt.Errorf("bleve: %w", err)
	}
	return r.(*scorch.IndexSnapshot), nil
}

// write makes a batch visible, with what the index then says about itself. It reaches the disk later, whole.
func (s *store) write(documents []document, gone []string, st *state) error {
	batch := index.NewBatch()
	s.merged.Store(false)
	for _, id := range gone {
		batch.Delete(id)
	}
	for i := range documents {
		batch.Update(&documents[i])
	}
	batch.SetInternal([]byte(stateKey), st.encode())
	s.unpersisted.Add(1)
	batch.SetPersistedCallback(func(error) {
		s.unpersisted.Add(-1)
		select {
		case s.persisted <- struct{}{}:
		default:
		}
	})
	if err := cmp.Or(s.at("before-batch"), failpoint.Hit("ranked/before-batch")); err != nil {
		return err
	}
	if err := s.scorch.Batch(batch); err != nil {
		return fmt.Errorf("batch: %w", err)
	}
	return cmp.Or(s.at("after-batch"), failpoint.Hit("ranked/after-batch"))
}

// close ends the goroutines of the index. What has not reached the disk is lost. A bleve that does not close is left to
// itself: where damage ended its persister inside a transaction of bbolt, nobody releases the lock that closing waits for.
func (s *store) close() {
	s.hurry()
	select {
	case <-s.merges:
	default:
		close(s.merges)
	}
	if s.scorch != nil {
		closed := make(chan struct{})
		go s.closeScorch(closed)
		select {
		case <-closed:
		case <-time.After(leavesWithin):
		}
	}
	s.queue.Close()
}

func (s *store) closeScorch(closed chan<- struct{}) {
	_ = s.scorch.Close() // a cache that does not close well is found out at the next opening
	close(closed)
}

// damagedFiles returns the names of the index's files whose checksum is wrong: bleve writes one into each and never
// looks at it. Files that it was still writing when the process died are among them; it does not refer to those.
func damagedFiles(dir string) (map[string]bool, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.zap"))
	if err != nil {
		return nil, fmt.Errorf("ranked search: %w", err)
	}
	damaged := map[string]bool{}
	for _, name := range names {
		ok, err := intact(name)
		if err != nil {
			return nil, fmt.Errorf("ranked search: %w", err)
		}
		if !ok {
			damaged[filepath.Base(name)] = true
		}
	}
	return damaged, shortBolt(filepath.Join(dir, "root.bolt"))
}

// intact reports whether the last four bytes of a file are the checksum of what is before them.
func intact(name string) (bool, error) {
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() < 4 {
		return false, err
	}
	sum := crc32.NewIEEE()
	if _, err := io.CopyBuffer(sum, io.LimitReader(file, info.Size()-4), make([]byte, 256<<10)); err != nil {
		return false, err
	}
	var want [4]byte
	if _, err := io.ReadFull(file, want[:]); err != nil {
		return false, err
	}
	return sum.Sum32() == binary.BigEndian.Uint32(want[:]), nil
}

// shortBolt returns an error for a bbolt file that is shorter than it says: a look beyond its end would be a fault
// that no goroutine of bleve survives. The layout is that of bbolt's meta pages: the page size at byte 24 of a page of
// which the meta starts at 16, and the number of pages at 56.
func shortBolt(name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ranked search: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("ranked search: %w", err)
	}
	if info.Size() == 0 {
		return nil // a new one, to bbolt; what it lacks is noticed
	}
	var meta [80]byte
	pageSize := int64(os.Getpagesize())
	for page := range int64(2) {
		if _, err := file.ReadAt(meta[:], page*pageSize); err != nil {
			return errors.New("root.bolt is cut off")
		}
		pages := binary.NativeEndian.Uint64(meta[56:])
		if binary.NativeEndian.Uint32(meta[16:]) != 0xED0CDAED || int64(binary.NativeEndian.Uint32(meta[24:])) != pageSize ||
			pages > 1<<40 || int64(pages)*pageSize > info.Size() {
			return errors.New("root.bolt is damaged at page " + strconv.FormatInt(page, 10) + ", or cut off")
		}
	}
	return nil
}

// setAside makes room for a new index in dir. The former one stays beside it until the new one is complete.
func setAside(dir string) error {
	if err := os.RemoveAll(asideOf(dir)); err != nil {
		return fmt.Errorf("ranked search: %w", err)
	}
	if err := os.Rename(currentOf(dir), asideOf(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ranked search: %w", err)
	}
	return nil
}

// marker is a file that says of an index that it was complete on the disk once: bleve opens one whose files are gone as an
// empty one.
const marker = "complete"

func mark(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, marker), nil, 0o600); err != nil {
		return fmt.Errorf("ranked search: %w", err)
	}
	return nil
}

func isMarked(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, marker))
	return err == nil
}

// Both are inside the directory, which may be a disk of its own.
func currentOf(dir string) string { return filepath.Join(dir, "current") }
func asideOf(dir string) string   { return filepath.Join(dir, "aside") }
