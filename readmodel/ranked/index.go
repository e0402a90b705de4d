package ranked

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// format is the version of the documents. Raise it if their fields, package terms with its tables, or the
// rendering of reasons changes: an index of another format is rebuilt.
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

// statusKeywords and proofsKeywords have the keyword of each filter. Documents that pass a filter have its keyword.
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

	newField := func(analyzer string) *mapping.FieldMapping {
		f := bleve.NewTextFieldMapping()
		f.Analyzer = analyzer
		f.SkipFreqNorm = true
		f.Store = false
		f.IncludeInAll = false
		f.IncludeTermVectors = false
		f.DocValues = false
		return f
	}

	entry := bleve.NewDocumentStaticMapping()
	for _, name := range []string{"Name", "ID", "Reason"} {
		f := newField(termAnalyzer)
		f.SkipFreqNorm = false // scores are made of frequencies and lengths
		entry.AddFieldMappingsAt(name, f)
	}
	entry.AddFieldMappingsAt("Words", newField(termAnalyzer))
	for _, name := range []string{"List", "Status", "Proofs"} {
		entry.AddFieldMappingsAt(name, newField(keyword.Name))
	}
	m.DefaultMapping = entry
	return m, nil
}

// newDocument analyzes a row.
func newDocument(analyzer *terms.Analyzer, r *readmodel.Row) document {
	name, reason := r.Text()
	nameTokens := analyzer.Tokens(nil, name)
	reasonTokens := analyzer.Tokens(nil, reason)
	d := document{
		Name: joinTerms(nameTokens), Reason: joinTerms(reasonTokens), ID: joinTerms(analyzer.Tokens(nil, r.ChatID())),
		List: string(r.List()), Status: statusKeywords[readmodel.StatusRisk],
	}

	// Words of verified entries may be suggested.
	if r.Verified() {
		d.Status = statusKeywords[readmodel.StatusVerified]
		var words []string
		for _, t := range slices.Concat(nameTokens, reasonTokens) {
			words = append(words, t.Plain)
		}
		d.Words = strings.Join(words, " ")
	}

	// Every row passes the first filter, whose keyword is "", and at most one other. The loop keeps the other's keyword.
	for proofs, keyword := range proofsKeywords {
		if r.Passes(readmodel.StatusAll, readmodel.Proofs(proofs)) {
			d.Proofs = keyword
		}
	}
	return d
}

// joinTerms returns the terms of all tokens, separated by spaces.
func joinTerms(tokens []terms.Token) string {
	var all []string
	for _, t := range tokens {
		all = append(all, t.Terms...)
	}
	return strings.Join(all, " ")
}

// index is an open index of bleve. Any goroutine may search it, but only the goroutine of Engine.Run changes and
// closes it.
type index struct {
	bleve.Index
	dir   string        // named by the time made
	made  time.Time     // when the index was created
	epoch string        // of the feed
	since atomic.Uint64 // the sequence up to which the feed is indexed

	hasDeleted bool // the index may hold words that no entry has any more
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

// openIndex opens the oldest index in dir, or returns nil if there is none. It removes the newer ones:
// updateIndex did not complete them, or it would have removed the oldest.
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

	nanoseconds, err := strconv.ParseInt(files[0].Name(), 10, 64) // as createIndex has named it
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

	// The index does not store whether something was deleted, so assume it.
	x := &index{Index: opened, dir: path, made: time.Unix(0, nanoseconds), epoch: stored.Epoch, hasDeleted: true}
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

	// If the index has grown by fewer documents than were added, the batch has replaced or deleted documents. bleve
	// retains their words.
	after, err := x.DocCount()
	x.hasDeleted = x.hasDeleted || after < before+added
	return err
}

// documentID returns the id of an entry's document.
func documentID(l events.List, entryID string) string { return string(l) + "/" + entryID }

// rowOf returns the row of a document, or nil if the view does not show it.
func rowOf(v *readmodel.View, documentID string) *readmodel.Row {
	list, id, _ := strings.Cut(documentID, "/")
	return v.Entry(events.List(list), id)
}
