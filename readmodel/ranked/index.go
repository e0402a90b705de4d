package ranked

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/whitespace"
	"github.com/blevesearch/bleve/v2/mapping"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/terms"
)

// format is the version of all that documents depend on: their fields, package terms with its tables, and
// the rendering of reasons. An index of another format is rebuilt.
const format = 9

// document is an entry as bleve indexes it. Texts are terms, separated by spaces.
type document struct {
	Name   string
	ID     string // the chat id
	Reason string
	Words  string // the words of name and reason without diacritics, if the entry is verified

	// Keywords.
	List   string
	Status string
	Proofs string
}

// statusKeywords and proofsKeywords have the keyword of each filter, which the documents that pass it have.
var (
	statusKeywords = [...]string{readmodel.StatusAll: "", readmodel.StatusVerified: "verified", readmodel.StatusRisk: "risk"}
	proofsKeywords = [...]string{readmodel.ProofsAll: "", readmodel.ProofsWith: "with", readmodel.ProofsPrivate: "private"}
)

// newMapping describes a document to bleve.
func newMapping() (mapping.IndexMapping, error) {
	m := bleve.NewIndexMapping()
	m.ScoringModel = "bm25"
	const termAnalyzer = "terms"
	if err := m.AddCustomAnalyzer(termAnalyzer, map[string]any{"type": custom.Name, "tokenizer": whitespace.Name}); err != nil {
		return nil, err
	}

	newField := func(analyzer string, isScored bool) *mapping.FieldMapping {
		f := bleve.NewTextFieldMapping()
		f.Analyzer = analyzer
		f.SkipFreqNorm = !isScored
		f.Store = false
		f.IncludeInAll = false
		f.IncludeTermVectors = false
		f.DocValues = false
		return f
	}

	entry := bleve.NewDocumentStaticMapping()
	for _, name := range []string{"Name", "ID", "Reason"} {
		entry.AddFieldMappingsAt(name, newField(termAnalyzer, true))
	}
	entry.AddFieldMappingsAt("Words", newField(termAnalyzer, false))
	for _, name := range []string{"List", "Status", "Proofs"} {
		entry.AddFieldMappingsAt(name, newField(keyword.Name, false))
	}
	m.DefaultMapping = entry
	return m, nil
}

// newDocument analyzes a row.
func newDocument(analyzer *terms.Analyzer, r *readmodel.Row) document {
	var words []string
	analyze := func(text string) string {
		var found []string
		for _, t := range analyzer.Tokens(nil, text) {
			found = append(found, t.Terms...)
			words = append(words, t.Plain)
		}
		return strings.Join(found, " ")
	}

	// Words of verified entries may be suggested. Join them before analyze adds the chat id, which is no word.
	name, reason := r.Text()
	d := document{List: string(r.List()), Name: analyze(name), Reason: analyze(reason)}
	if r.Verified() {
		d.Words = strings.Join(words, " ")
	}
	d.ID = analyze(r.ChatID())

	// Every row passes the first filter, which has no keyword. The last filter that a row passes gives it one.
	for status, keyword := range statusKeywords {
		if r.Passes(readmodel.Status(status), readmodel.ProofsAll) {
			d.Status = keyword
		}
	}

	for proofs, keyword := range proofsKeywords {
		if r.Passes(readmodel.StatusAll, readmodel.Proofs(proofs)) {
			d.Proofs = keyword
		}
	}
	return d
}

// index is an open index of bleve. Any goroutine may search it; only Engine.Run's changes and closes it.
type index struct {
	bleve.Index
	dir   string
	made  time.Time // the name of dir
	epoch string    // of the feed
	since atomic.Uint64

	deleted bool // the index may hold words that no entry has any more
}

// state is stored in the index with every batch.
type state struct {
	Format int    `json:"format"`
	Epoch  string `json:"epoch"`
	Since  uint64 `json:"since"`
}

var (
	stateKey = []byte("registry")
	errStale = errors.New("it is of another stream or format")
)

// boltSettings bounds how long opening an index waits until another process unlocks it.
func boltSettings() map[string]any { return map[string]any{"bolt_timeout": "2s"} }

// createIndex makes an empty index in dir, for the feed of an epoch.
func createIndex(dir, epoch string) (*index, error) {
	m, err := newMapping()
	if err != nil {
		return nil, err
	}

	now := time.Now()
	path := filepath.Join(dir, strconv.FormatInt(now.UnixNano(), 10))
	opened, err := bleve.NewUsing(path, m, bleve.Config.DefaultIndexType, bleve.Config.DefaultKVStore, boltSettings())
	if err != nil {
		return nil, err
	}
	return &index{Index: opened, dir: path, made: now, epoch: epoch}, nil
}

// openIndex opens the oldest index in dir, or returns nil if there is none. It removes the others, which are not
// complete: updateIndex removes an index once a newer one is complete.
func openIndex(dir string) (*index, error) {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	for _, newer := range files[1:] {
		if err := os.RemoveAll(filepath.Join(dir, newer.Name())); err != nil {
			return nil, err
		}
	}

	nanoseconds, err := strconv.ParseInt(files[0].Name(), 10, 64)
	if err != nil {
		return nil, errStale
	}

	path := filepath.Join(dir, files[0].Name())
	opened, err := bleve.OpenUsing(path, boltSettings())
	if err != nil {
		return nil, err
	}

	raw, err := opened.GetInternal(stateKey)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	var stored state
	if err := json.Unmarshal(raw, &stored); err != nil || stored.Format != format {
		return nil, errors.Join(errStale, opened.Close())
	}

	x := &index{Index: opened, dir: path, made: time.Unix(0, nanoseconds), epoch: stored.Epoch, deleted: true} // deleted is not stored: assume it
	x.since.Store(stored.Since)
	return x, nil
}

// Bounds of a batch.
const (
	batchChanges = 2000
	batchBytes   = 8 << 20
)

// followFeed indexes the changes in the feed of v after x.since.
func (x *index) followFeed(ctx context.Context, analyzer *terms.Analyzer, v *readmodel.View) error {
	if v.Epoch() != x.epoch || v.Sequence() < x.since.Load() {
		return errStale
	}

	for ctx.Err() == nil {
		page := v.Feed().Page(x.since.Load(), batchChanges, batchBytes)
		if len(page.Changes) > 0 {
			if err := x.indexPage(analyzer, &page); err != nil {
				return err
			}
		}
		x.since.Store(page.Until)
		if page.UpToDate {
			return nil
		}
	}
	return ctx.Err()
}

// indexPage indexes a page of the feed as one batch.
func (x *index) indexPage(analyzer *terms.Analyzer, page *readmodel.FeedPage) error {
	before, err := x.DocCount()
	if err != nil {
		return err
	}

	batch := x.NewBatch()
	added := uint64(0)
	for _, c := range page.Changes {
		id := documentID(c.List, c.ID)
		if c.Row == nil {
			batch.Delete(id)
			continue
		}
		if err := batch.Index(id, newDocument(analyzer, c.Row)); err != nil {
			return err
		}
		added++
	}

	// The state belongs to the batch: both are stored, or neither.
	stored, err := json.Marshal(state{Format: format, Epoch: x.epoch, Since: page.Until})
	if err != nil {
		return err
	}
	batch.SetInternal(stateKey, stored)
	if err := x.Batch(batch); err != nil {
		return fmt.Errorf("batch: %w", err)
	}

	// If the index has grown by fewer documents than were added, some were replaced or deleted, and bleve
	// retains their words.
	after, err := x.DocCount()
	x.deleted = x.deleted || after < before+added
	return err
}

// documentID returns the id of an entry's document.
func documentID(l events.List, entryID string) string { return string(l) + "/" + entryID }

// rowOf returns the row of a document, or nil if the view does not show it.
func rowOf(v *readmodel.View, documentID string) *readmodel.Row {
	list, id, _ := strings.Cut(documentID, "/")
	return v.Entry(events.List(list), id)
}
