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

// format is the version of what a document holds; that of the analysis is terms.Version. An index
// of other ones is rebuilt. TestFormat fails when documents change and format does not.
const format = 3

// Identity tells what an index was made from. An index of another identity is rebuilt.
type Identity struct {
	StreamEpoch string `json:"streamEpoch"`
	DataSet     string `json:"dataSet"` // of the store (package snapshots): new at every rebuild and restore
}

// state is what an index says about itself. It is in every batch, so that it is true of the
// documents whatever batch was the last to reach the disk.
type state struct {
	Format     int    `json:"format"`
	Analysis   int    `json:"analysis"`   // terms.Version
	Render     uint32 `json:"render"`     // readmodel.RenderVersion
	Projection uint32 `json:"projection"` // readmodel.ProjectionVersion
	Identity
	Complete bool   `json:"complete"` // every entry was in the index once
	Sequence uint64 `json:"sequence"` // up to which every change is in it
	Digest   string `json:"digest"`   // of the read model at Sequence
}

func newState(id Identity) state {
	return state{Format: format, Analysis: terms.Version, Render: readmodel.RenderVersion, Projection: readmodel.ProjectionVersion, Identity: id}
}

const stateKey = "registry"

// The bounds of a disk that answers.
const (
	// lockedFor is how long another process may keep the directory.
	lockedFor = 2 * time.Second
	// maxUnpersisted is how many batches may be in memory alone.
	maxUnpersisted = 8
	// leavesWithin bounds the wait for the last batches, and for bleve, when the index is closed.
	leavesWithin = 2 * time.Second
)

// store is an open index of bleve. One goroutine writes; the snapshots that it gives may be read by
// any.
type store struct {
	dir      string
	scorch   *scorch.Scorch // nil: it is not open
	queue    *index.AnalysisQueue
	merges   chan struct{} // closed: merges may begin
	failed   chan error    // what bleve's own goroutines met; holds the first
	at       func(string) error
	pacer    *indexing.Pacer
	ctx      context.Context // of the merges' rests
	endRests context.CancelFunc

	merging     atomic.Pointer[time.Time] // when the present merge began; nil: none is under way
	merged      atomic.Bool               // since the last batch: the disk still has what was merged
	unrested    atomic.Int64              // how long the last merge took, while no rest has followed
	unpersisted atomic.Int64              // batches that are in memory alone
	persisted   chan struct{}             // holds one: a batch has reached the disk
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

// event holds a merge back until the index is open and a rest has followed the last
// merge. It also notes when one begins and ends. Within a merge, which is bleve's own, there is no
// rest: with 100,000 documents it takes up to a second.
func (s *store) event(e scorch.Event) bool {
	switch e.Kind {
	case scorch.EventKindPreMergeCheck:
		<-s.merges
		s.pacer.Rest(s.ctx, time.Duration(s.unrested.Swap(0)))
		s.merging.Store(new(time.Now()))
	case scorch.EventKindMergeTaskIntroductionStart:
		_ = cmp.Or(s.at("merged"), failpoint.Hit("ranked/merged")) // to die or hang at
	case scorch.EventKindMergeTaskIntroduction:
		s.merged.Store(true)
	case scorch.EventKindMergerProgress:
		s.merging.Store(nil)
		s.unrested.Store(int64(e.Duration))
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

// write makes a batch visible, with what the index then says about itself. It reaches the disk
// later, whole.
func (s *store) write(documents []document, gone []string, st *state) error {
	batch := index.NewBatch()
	s.merged.Store(false)
	for _, id := range gone {
		batch.Delete(id)
	}
	for i := range documents {
		batch.Update(&documents[i])
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

// keepUp waits while too many batches are in memory alone.
func (s *store) keepUp(ctx context.Context) error { return s.await(ctx, maxUnpersisted-1) }

// await waits until so few batches are in memory alone.
func (s *store) await(ctx context.Context, batches int64) error {
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

// leave closes the index after its last batches have reached the disk, if that does not take long.
func (s *store) leave() {
	s.endRests()
	ctx, cancel := context.WithTimeout(context.Background(), leavesWithin)
	defer cancel()
	_ = s.await(ctx, 0) // what is lost is found out at the next opening
	s.close()
}

// close ends the goroutines of the index. What has not reached the disk is lost. A bleve that does
// not close is left to itself: where damage ended its persister inside a transaction of bbolt,
// nobody releases the lock that closing waits for.
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

// opening is the name of an empty file beside the index's. It is there from before bleve looks at
// the files until a batch has reached the disk: a fault in one of bleve's goroutines ends the
// process. The next opening finds it and fails, so that the index is rebuilt.
const opening = "opening"

func (s *store) isOpening() bool {
	_, err := os.Stat(filepath.Join(s.dir, opening))
	return err == nil
}

func (s *store) opened() { _ = os.Remove(filepath.Join(s.dir, opening)) } // if it stays, the next opening rebuilds the index

// filesOf returns where bleve keeps the index of an Engine whose Dir is dir. It can be removed, also
// if dir is a disk of its own.
func filesOf(dir string) string { return filepath.Join(dir, "current") }
