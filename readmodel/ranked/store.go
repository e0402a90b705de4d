package ranked

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"example.org/registry/events/failpoint"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
	"example.org/registry/readmodel/indexing"
	"example.org/registry/readmodel/terms"
)

// format is the version of a document's data; terms.Version is the version of the analysis. An index of
// other versions is rebuilt. TestFormat fails if documents change and format does not.
const format = 5

// Identity identifies the source of an index. An index of another identity is rebuilt.
type Identity struct {
	StreamEpoch string `json:"streamEpoch"`
	DataSet     string `json:"dataSet"` // of the store (package snapshots): new at every rebuild and restore
}

// state is an index's description of itself. Every batch has it, so it fits the documents,
// whichever batch was the last to reach the disk.
type state struct {
	Format     int    `json:"format"`
	Analysis   int    `json:"analysis"`   // terms.Version
	Render     uint32 `json:"render"`     // readmodel.RenderVersion
	Projection uint32 `json:"projection"` // readmodel.ProjectionVersion
	Identity
	Complete bool   `json:"complete"` // whether the index has held every entry
	Sequence uint64 `json:"sequence"` // the index has every change up to here
	Digest   string `json:"digest"`   // of the read model at Sequence
}

func newState(id Identity) state {
	return state{Format: format, Analysis: terms.Version, Render: readmodel.RenderVersion, Projection: readmodel.ProjectionVersion, Identity: id}
}

const stateKey = "registry"

// Bounds of waits for the disk.
const (
	// lockedFor is how long another process may hold the directory's lock.
	lockedFor = 2 * time.Second
	// maxUnpersisted is how many batches may not be on disk yet.
	maxUnpersisted = 8
	// leavesWithin bounds the wait for the last batches, and for bleve, when the index is closed.
	leavesWithin = 2 * time.Second
)

// store is an open index of bleve. One goroutine writes; any may read its snapshots.
type store struct {
	dir      string
	scorch   *scorch.Scorch // nil if it is not open
	queue    *index.AnalysisQueue
	merges   chan struct{} // closed once merges may begin
	failed   chan error    // holds the first error of bleve's own goroutines
	at       func(string) error
	pacer    *indexing.Pacer
	ctx      context.Context // of the merges' rests
	endRests context.CancelFunc

	merging     atomic.Pointer[time.Time] // start of the current merge; nil between merges
	merged      atomic.Bool               // since the last batch: the merged files are still on the disk
	unrested    atomic.Int64              // duration of the last merge, until a rest follows it
	unpersisted atomic.Int64              // batches that are not on disk yet
	persisted   chan struct{}             // holds one value when a batch has reached the disk
}

// openStore opens the index in dir, or makes an empty one.
func openStore(dir string, pacer *indexing.Pacer, t tuning) (s *store, err error) {
	s = &store{
		dir: dir, queue: index.NewAnalysisQueue(1), merges: make(chan struct{}),
		failed: make(chan error, 1), persisted: make(chan struct{}, 1), at: t.at, pacer: pacer,
	}
	if s.at == nil {
		s.at = func(string) error { return nil }
	}
	s.ctx, s.endRests = context.WithCancel(context.Background())
	if err = fault.Catch(func() error { return s.open(cmp.Or(t.nap, nap)) }); err != nil {
		s.close()
		return nil, fmt.Errorf("opening: %w", err)
	}
	return s, nil
}

func (s *store) open(nap time.Duration) error {
	if s.isOpening() {
		return errors.New("the process ended while it was being opened")
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, opening), nil, 0o600); err != nil {
		return err
	}
	made, err := s.newScorch(nap)
	if err != nil {
		return err
	}
	s.scorch = made
	if err := made.Open(); err != nil {
		s.scorch = nil // it has closed itself, and cannot be closed again
		return err
	}
	close(s.merges)
	return nil
}

// registering guards bleve's tables of callbacks, which NewScorch reads. They are global.
var registering sync.Mutex

// newScorch makes an index whose goroutines report to the store.
func (s *store) newScorch(nap time.Duration) (*scorch.Scorch, error) {
	registering.Lock()
	defer registering.Unlock()
	const name = "registry"
	scorch.RegistryEventCallbacks[name], scorch.RegistryAsyncErrorCallbacks[name] = s.event, s.fail
	defer func() {
		delete(scorch.RegistryEventCallbacks, name)
		delete(scorch.RegistryAsyncErrorCallbacks, name)
	}()
	made, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path": s.dir, "bolt_timeout": lockedFor.String(), "unsafe_batch": true, "numSnapshotsToKeep": 1,
		"eventCallbackName": name, "asyncErrorCallbackName": name,
		"scorchPersisterOptions": map[string]any{"PersisterNapTimeMSec": nap.Milliseconds(), "PersisterNapUnderNumFiles": 300},
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

// event delays a merge until the index is open and a rest has followed the last merge. It also
// records when a merge begins and ends. bleve does not rest within a merge, which takes up to a
// second with 100,000 documents.
func (s *store) event(e scorch.Event) bool {
	switch e.Kind {
	case scorch.EventKindPreMergeCheck:
		<-s.merges
		s.pacer.Rest(s.ctx, time.Duration(s.unrested.Swap(0)))
		s.merging.Store(new(time.Now()))
	case scorch.EventKindMergeTaskIntroductionStart:
		_ = cmp.Or(s.at("merged"), failpoint.Hit("ranked/merged")) // a place to die or hang at
	case scorch.EventKindMergeTaskIntroduction:
		s.merged.Store(true)
	case scorch.EventKindMergerProgress:
		s.merging.Store(nil)
		s.unrested.Store(int64(e.Duration))
	}
	return true
}

// snapshot returns the current index. The caller closes it.
func (s *store) snapshot() (*scorch.IndexSnapshot, error) {
	r, err := s.scorch.Reader()
	if err != nil {
		return nil, fmt.Errorf("bleve: %w", err)
	}
	return r.(*scorch.IndexSnapshot), nil
}

// write makes a batch visible, with the index's new state. The batch reaches the disk later, as a
// whole.
func (s *store) write(documents []*document, gone []string, st *state) error {
	batch := index.NewBatch()
	s.merged.Store(false)
	for _, id := range gone {
		batch.Delete(id)
	}
	for _, d := range documents {
		batch.Update(d)
	}
	text, err := json.Marshal(st)
	if err != nil {
		return err
	}
	batch.SetInternal([]byte(stateKey), text)
	s.unpersisted.Add(1)
	batch.SetPersistedCallback(func(err error) {
		if s.unpersisted.Add(-1); err == nil {
			s.opened()
		}
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

// keepUp waits while too many batches are not on disk yet.
func (s *store) keepUp(ctx context.Context) error { return s.waitPersisted(ctx, maxUnpersisted-1) }

// waitPersisted waits until at most batches batches are not yet on disk.
func (s *store) waitPersisted(ctx context.Context, batches int64) error {
	for s.unpersisted.Load() > batches {
		select {
		case <-s.persisted:
		case err := <-s.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// flushAndClose closes the index after its last batches have reached the disk, or after leavesWithin.
func (s *store) flushAndClose() {
	s.endRests()
	ctx, cancel := context.WithTimeout(context.Background(), leavesWithin)
	defer cancel()
	_ = s.waitPersisted(ctx, 0) // the next opening finds lost batches
	s.close()
}

// close ends the goroutines of the index. Batches that have not reached the disk are lost. If bleve
// does not close, it is abandoned: after damage has ended its persister inside a transaction of
// bbolt, closing waits forever for that transaction's lock.
func (s *store) close() {
	s.endRests()
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
	defer close(closed)
	if s.scorch.Close() == nil {
		s.opened()
	}
}

// opening is the name of an empty file next to the index. It exists from before bleve reads the
// files until a batch has reached the disk, because a fault in one of bleve's goroutines ends the
// process. If the next opening finds it, it fails, and the index is rebuilt.
const opening = "opening"

func (s *store) isOpening() bool {
	_, err := os.Stat(filepath.Join(s.dir, opening))
	return err == nil
}

func (s *store) opened() { _ = os.Remove(filepath.Join(s.dir, opening)) } // if it stays, the next opening rebuilds the index

// filesOf returns the directory in which bleve keeps the index of an Engine with Dir dir. It can be
// removed, even if dir is a mounted disk.
func filesOf(dir string) string { return filepath.Join(dir, "current") }
