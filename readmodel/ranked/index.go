package ranked

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// format numbers what a document holds. An index of another format is made anew.
const format = 6

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

// The values of Status and Proofs.
const (
	verified = "verified"
	risk     = "risk"

	withProofs    = "with"
	privateProofs = "private"
)

// newMapping describes a document to bleve.
func newMapping() (mapping.IndexMapping, error) {
	m := bleve.NewIndexMapping()
	m.ScoringModel = "bm25"
	const analyzer = "terms"
	if err := m.AddCustomAnalyzer(analyzer, map[string]any{"type": custom.Name, "tokenizer": whitespace.Name}); err != nil {
		return nil, err
	}

	field := func(analyzer string, scored bool) *mapping.FieldMapping {
		f := bleve.NewTextFieldMapping()
		f.Analyzer, f.SkipFreqNorm = analyzer, !scored
		f.Store, f.IncludeInAll, f.IncludeTermVectors, f.DocValues = false, false, false, false
		return f
	}
	entry := bleve.NewDocumentStaticMapping()
	for _, name := range []string{"Name", "ID", "Reason"} {
		entry.AddFieldMappingsAt(name, field(analyzer, true))
	}
	entry.AddFieldMappingsAt("Words", field(analyzer, false))
	for _, name := range []string{"List", "Status", "Proofs"} {
		entry.AddFieldMappingsAt(name, field(keyword.Name, false))
	}
	m.DefaultMapping = entry
	return m, nil
}

// newDocument analyzes a row.
func newDocument(analyzer *terms.Analyzer, r *readmodel.Row) (document, error) {
	p, err := r.Public()
	if err != nil {
		return document{}, err
	}
	name, reason, err := r.Text()
	if err != nil {
		return document{}, err
	}

	d := document{List: string(r.List())}
	d.Status, d.Proofs = keywords(&p)

	var words []string
	analyze := func(text string) string {
		var found []string
		for _, t := range analyzer.Tokens(nil, text) {
			found = append(found, t.Terms...)
			words = append(words, t.Plain)
		}
		return strings.Join(found, " ")
	}
	d.Name, d.Reason = analyze(name), analyze(reason)
	if p.Verified {
		d.Words = strings.Join(words, " ")
	}
	d.ID = analyze(p.ChatID)
	return d, nil
}

// keywords returns the Status and the Proofs of an entry's document.
func keywords(p *readmodel.PublicEntry) (status, proofs string) {
	status = risk
	if p.Verified {
		status = verified
	}
	switch {
	case p.PrivateProofs:
		proofs = privateProofs
	case p.ProofsID != nil:
		proofs = withProofs
	}
	return status, proofs
}

// index is an open index of bleve. One goroutine makes and closes it and calls follow; any may
// search it.
type index struct {
	bleve.Index
	dir   string
	made  time.Time // its directory's name
	epoch string    // of the feed
	since atomic.Uint64

	deleted bool // whether it may hold words that no entry has any more
}

// state is what an index stores of itself, with every batch.
type state struct {
	Format   int    `json:"format"`
	Analysis int    `json:"analysis"` // terms.Version
	Render   uint32 `json:"render"`   // readmodel.RenderVersion
	Epoch    string `json:"epoch"`
	Since    uint64 `json:"since"`
}

var (
	stateKey = []byte("registry")
	errStale = errors.New("it is of another stream or version")
)

// lockedFor is how long another process may hold an index's lock.
const lockedFor = 2 * time.Second

func settings() map[string]any { return map[string]any{"bolt_timeout": lockedFor.String()} }

// createIndex makes an empty index in dir, for the feed of an epoch.
func createIndex(dir, epoch string) (*index, error) {
	m, err := newMapping()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	path := filepath.Join(dir, strconv.FormatInt(now.UnixNano(), 10))
	opened, err := bleve.NewUsing(path, m, bleve.Config.DefaultIndexType, bleve.Config.DefaultKVStore, settings())
	if err != nil {
		return nil, err
	}
	return &index{Index: opened, dir: path, made: now, epoch: epoch}, nil
}

// openIndex opens the oldest index in dir, and removes others: a newer one was not complete. It
// returns nil if there is none.
func openIndex(dir string) (*index, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
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

	x := &index{dir: filepath.Join(dir, files[0].Name()), made: time.Unix(0, nanoseconds), deleted: true}
	if x.Index, err = bleve.OpenUsing(x.dir, settings()); err != nil {
		return nil, err
	}
	if err := x.restore(); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// restore reads the stored state.
func (x *index) restore() error {
	raw, err := x.GetInternal(stateKey)
	if err != nil {
		return err
	}
	var st state
	if err := json.Unmarshal(raw, &st); err != nil {
		return errStale
	}
	x.epoch = st.Epoch
	x.since.Store(st.Since)
	if st != x.state(st.Since) {
		return errStale
	}
	return nil
}

func (x *index) state(since uint64) state {
	return state{Format: format, Analysis: terms.Version, Render: readmodel.RenderVersion, Epoch: x.epoch, Since: since}
}

// Bounds of a batch.
const (
	batchChanges = 2000
	batchBytes   = 8 << 20
)

// follow indexes what has changed in the feed of v since the last time.
func (x *index) follow(ctx context.Context, analyzer *terms.Analyzer, v *readmodel.View) error {
	if until, _ := v.FeedSequence(); v.Epoch() != x.epoch || until < x.since.Load() {
		return errStale
	}
	for ctx.Err() == nil {
		page := v.Feed(x.since.Load(), batchChanges, batchBytes)
		if len(page.Changes) > 0 {
			if err := x.apply(analyzer, &page); err != nil {
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

// apply indexes a page of the feed.
func (x *index) apply(analyzer *terms.Analyzer, page *readmodel.FeedPage) error {
	before, err := x.DocCount()
	if err != nil {
		return err
	}

	batch, added := x.NewBatch(), uint64(0)
	for _, c := range page.Changes {
		id := documentID(c.List, c.ID)
		if c.Row == nil {
			batch.Delete(id)
			continue
		}
		d, err := newDocument(analyzer, c.Row)
		if err != nil {
			return err
		}
		if err := batch.Index(id, d); err != nil {
			return err
		}
		added++
	}
	stored, err := json.Marshal(x.state(page.Until))
	if err != nil {
		return err
	}
	batch.SetInternal(stateKey, stored)
	if err := x.Batch(batch); err != nil {
		return fmt.Errorf("batch: %w", err)
	}

	after, err := x.DocCount()
	x.deleted = x.deleted || after < before+added
	return err
}

// documentID returns the id of an entry's document.
func documentID(l events.List, entryID string) string { return string(l) + "/" + entryID }

// rowOf returns the row of a document, or nil if the view does not show it.
func rowOf(v *readmodel.View, documentID string) *readmodel.Row {
	list, id, _ := strings.Cut(documentID, "/")
	if _, ok := events.List(list).Index(); !ok {
		return nil
	}
	return v.Entry(events.List(list), id)
}
