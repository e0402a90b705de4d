package ranked

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/fault"
	"example.org/registry/readmodel/terms"
)

// The weights of the fields: a name says more about an entry than its reason does, and a chat id
// identifies it.
func weights() [numScored]float64 { return [...]float64{inName: 3, inID: 8, inReason: 1} }

// BM25's constants, as in bleve.
const (
	k1 = 1.2
	b  = 0.75
)

// Searcher answers from the index at one moment. Its owner releases it.
type Searcher struct {
	engine *Engine
	*published
}

// Acquire returns the current index, or nil if there is none. A view loaded afterwards has every
// change that the index has.
func (e *Engine) Acquire() *Searcher {
	p := e.acquire()
	if p == nil {
		return nil
	}
	return &Searcher{e, p}
}

// Release releases the index.
func (a *Searcher) Release() { a.published.release() }

// Sequence returns the last sequence that the index covers.
func (a *Searcher) Sequence() uint64 { return a.sequence }

// Search returns a page of the entries of v that have every word of q or, if none has, all but one.
// v must have been loaded after Acquire. The error is ctx's or readmodel.ErrNoRanking: v is too
// old, of another model or too far ahead, or the index is faulty. A faulty index is rebuilt.
func (a *Searcher) Search(ctx context.Context, v *readmodel.View, q readmodel.RankedQuery) (page readmodel.RankedPage, err error) {
	if !v.SameModel(a.view) || v.Version() < a.view.Version() {
		return page, readmodel.ErrNoRanking
	}
	err = fault.Catch(func() error {
		analyzer := a.engine.analyzer()
		defer a.engine.analyzers.Put(analyzer)
		s := &search{published: a.published, ctx: ctx, view: v, query: &q, analyzer: analyzer,
			forTerms: maxTermKeys, forNear: maxKeys, forTries: maxKeys}
		if s.changed, err = changedRows(v, a.view.Version()); err != nil {
			return err
		}
		page, err = s.page()
		return err
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, readmodel.ErrNoRanking) {
		a.by.report(err)
		err = readmodel.ErrNoRanking
	}
	return page, err
}

// report makes the builder abandon the index.
func (b *builder) report(err error) { b.store.fail(err, "") }

// search is one query in progress.
type search struct {
	*published
	ctx      context.Context
	view     *readmodel.View
	query    *readmodel.RankedQuery
	analyzer *terms.Analyzer
	changed  map[readmodel.RowRef]bool // rows whose text in the index is older
	looks    int                       // changed rows that were read
	reads    int                       // rows that were read for a spelling

	forTerms, forNear, forTries budget // of the query's own words, of suggestions, and of trying these
}

// maxChanged bounds the changed rows that one query analyzes. Beyond them, the latest changes are
// missing from the result.
const maxChanged = 256

// changedRows returns the rows that have changed after a version.
func changedRows(v *readmodel.View, version uint64) (map[readmodel.RowRef]bool, error) {
	refs, ok := v.ChangedSince(version)
	if !ok {
		return nil, readmodel.ErrNoRanking // tens of thousands of changes came at once
	}
	if len(refs) == 0 {
		return nil, nil
	}
	changed := make(map[readmodel.RowRef]bool, len(refs))
	for _, ref := range refs {
		changed[ref] = true
	}
	return changed, nil
}

// word is a word of the query.
type word struct {
	plain  string
	folded string
	terms  []string // the terms of its forms; a match has one of them

	start, end int // position in the query, in code points
}

// has reports whether the word has one of the terms.
func (w *word) has(terms []string) bool {
	return slices.ContainsFunc(terms, func(term string) bool { return slices.Contains(w.terms, term) })
}

// words returns the distinct words of text, without weak words unless there are no others.
func (s *search) words(text string, left *budget) ([]word, error) {
	var words []word
	tokens := s.analyzer.Tokens(nil, text)
	strong := slices.ContainsFunc(tokens, func(t terms.Token) bool { return !t.Weak })
	for _, t := range tokens {
		if t.Part || t.Weak && strong || slices.ContainsFunc(words, func(w word) bool { return w.folded == t.Folded }) {
			continue
		}
		w := word{plain: t.Plain, folded: t.Folded, terms: slices.Clone(s.analyzer.Meant(t.Folded)), start: t.Start, end: t.End}
		if !slices.Contains(w.terms, t.Plain) {
			w.terms = append(w.terms, t.Plain) // distinct, since a term's score is added once for each
		}
		if err := s.addTerms(&w, left); err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	return words, nil
}

// addTerms adds the terms of the words that differ from w only in diacritics. A text typed without
// them can mean those words, and one typed with them can mean texts without. Words that are one of
// their own terms are found already.
func (s *search) addTerms(w *word, left *budget) error {
	return s.eachWord(left, wordField, []byte(w.plain), []byte(w.plain+"\x01"), nil, func(key string, _ uint64) error {
		plain, folded, marked := strings.Cut(key, "\x00")
		if plain != w.plain {
			return nil
		}
		if !marked {
			folded = plain
		}
		for _, term := range s.analyzer.Terms(folded) {
			if !slices.Contains(w.terms, term) {
				w.terms = append(w.terms, term)
			}
		}
		return nil
	})
}

// eachWord calls f with the keys of a field's dictionary that the automaton accepts and that a
// document has. Keys begin at start and end before end, unless that is nil. A key of several
// segments occurs several times. It ends early once the budget is spent.
func (s *search) eachWord(left *budget, field string, start, end []byte, automaton segment.Automaton, f func(key string, documents uint64) error) error {
	for _, part := range s.parts {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		dictionary, err := part.Segment().Dictionary(field)
		if err != nil {
			return fmt.Errorf("dictionary: %w", err)
		}
		deleted := part.Deleted()
		keys := dictionary.AutomatonIterator(automaton, start, end)
		for {
			entry, err := keys.Next()
			if err != nil {
				return fmt.Errorf("dictionary: %w", err)
			}
			if entry == nil {
				break
			}
			if !left.spend() {
				return nil
			}
			documents := entry.Count
			if deleted != nil {
				postings, err := dictionary.PostingsList([]byte(entry.Term), deleted, nil)
				if err != nil {
					return fmt.Errorf("postings of a word: %w", err)
				}
				if documents = postings.Count(); documents == 0 {
					continue
				}
			}
			if err := f(entry.Term, documents); err != nil {
				return err
			}
		}
	}
	return nil
}

// postings are the documents of a segment that have a term in a field.
type postings struct {
	field    int
	iterator segment.PostingsIterator
	bitmap   *roaring.Bitmap
}

// found is the postings of one word in a segment.
type found struct {
	postings []postings
	any      *roaring.Bitmap // documents that have the word in any field, including deleted ones
}

// find looks a word up in a segment.
func (s *search) find(p *part, w *word) (f found, err error) {
	var all []*roaring.Bitmap
	for i, name := range scoredFields() {
		dictionary, err := p.Segment().Dictionary(name)
		if err != nil {
			return f, fmt.Errorf("dictionary: %w", err)
		}
		for _, term := range w.terms {
			list, err := dictionary.PostingsList([]byte(term), nil, nil)
			if err != nil {
				return f, fmt.Errorf("postings: %w", err)
			}
			if list.Count() == 0 {
				continue
			}
			one := postings{field: i, iterator: list.Iterator(true, false, false, nil)}
			shortcut, ok := one.iterator.(segment.OptimizablePostingsIterator)
			if !ok {
				return f, errors.New("postings: unexpected type")
			}
			if one.bitmap = shortcut.ActualBitmap(); one.bitmap == nil {
				if doc, single := shortcut.DocNum1Hit(); single {
					one.bitmap = roaring.BitmapOf(uint32(doc))
				} else {
					return f, errors.New("postings: no documents")
				}
			}
			f.postings = append(f.postings, one)
			all = append(all, one.bitmap)
		}
	}
	switch len(all) {
	case 0:
		f.any = roaring.New()
	case 1:
		f.any = all[0]
	default:
		f.any = roaring.FastOr(all...)
	}
	return f, nil
}

// evaluation is the matches of a query before order and page.
type evaluation struct {
	words    []word
	missing  int                  // number of words that a document may lack
	found    [][]found            // by part and word
	accepted []*roaring.Bitmap    // by part: the documents that pass the query's filters
	have     []uint64             // by word: number of documents that have it
	idf      []float64            // by word
	page     readmodel.RankedPage // only its counts
}

// evaluate finds the documents that have every word, and counts those that pass q's filters.
func (s *search) evaluate(words []word, q *readmodel.RankedQuery) (*evaluation, error) {
	e := &evaluation{words: words, found: make([][]found, len(s.parts)), accepted: make([]*roaring.Bitmap, len(s.parts))}
	e.have = make([]uint64, len(words))
	for i := range s.parts {
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		p := &s.parts[i]
		for n := range words {
			f, err := s.find(p, &words[n])
			if err != nil {
				return nil, err
			}
			e.found[i] = append(e.found[i], f)
			e.have[n] += f.any.GetCardinality()
			if deleted := p.Deleted(); deleted != nil {
				e.have[n] -= f.any.AndCardinality(deleted)
			}
		}
	}
	for _, n := range e.have {
		e.idf = append(e.idf, math.Log(1+(float64(s.docs)-float64(n)+0.5)/(float64(n)+0.5)))
	}
	return e, s.match(e, q)
}

// relaxedFrom is the minimum number of words of a query for which a document may lack one, if no
// document has all.
const relaxedFrom = 3

// relax finds the documents that have all words but one, if the query has enough words and no
// document has all.
func (s *search) relax(e *evaluation, q *readmodel.RankedQuery) error {
	if len(e.words) < relaxedFrom || e.page.Facets != [events.NumLists]int{} {
		return nil
	}
	e.missing = 1
	err := s.match(e, q)
	e.page.Relaxed = e.page.Facets != [events.NumLists]int{}
	return err
}

// match finds the documents that have enough words, and counts those that pass q's filters.
func (s *search) match(e *evaluation, q *readmodel.RankedQuery) error {
	for i := range s.parts {
		if s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		p := &s.parts[i]
		every, butOne := e.found[i][0].any, (*roaring.Bitmap)(nil) // nil: all documents
		for _, f := range e.found[i][1:] {
			if e.missing > 0 {
				if butOne == nil {
					butOne = roaring.Or(every, f.any)
				} else {
					butOne = roaring.Or(every, roaring.And(butOne, f.any))
				}
			}
			every = roaring.And(every, f.any)
		}
		if e.missing > 0 {
			every = butOne
		}
		if deleted := p.Deleted(); deleted != nil {
			every = roaring.AndNot(every, deleted)
		}
		var err error
		if e.accepted[i], err = s.accept(p, every, q, e); err != nil {
			return err
		}
	}
	return nil
}

// accept counts the documents that pass q's filters, and returns the ones in q's list.
func (s *search) accept(p *part, every *roaring.Bitmap, q *readmodel.RankedQuery, e *evaluation) (*roaring.Bitmap, error) {
	wanted := -1
	if q.List != "" {
		wanted, _ = q.List.Index()
	}
	accepted := make([]uint32, 0, every.GetCardinality())
	docs := every.ManyIterator()
	var buffer [256]uint32
	for n := docs.NextMany(buffer[:]); n > 0; n = docs.NextMany(buffer[:]) {
		for _, doc := range buffer[:n] {
			ref := p.refs[doc]
			if !s.view.Passes(ref, q) {
				continue
			}
			if s.changed[ref] {
				still, err := s.stillMatches(ref, e)
				if err != nil {
					return nil, err
				}
				if !still {
					continue
				}
			}
			e.page.Facets[ref.List()]++
			if wanted < 0 || ref.List() == wanted {
				accepted = append(accepted, doc)
			}
		}
	}
	e.page.Total += len(accepted)
	if len(accepted) == int(every.GetCardinality()) {
		return every, nil
	}
	return roaring.BitmapOf(accepted...), nil
}

// stillMatches reports whether the current text of a changed row matches.
func (s *search) stillMatches(ref readmodel.RowRef, e *evaluation) (bool, error) {
	if s.looks++; s.looks > maxChanged {
		return false, nil
	}
	r := s.view.ShownAt(ref)
	name, reason, err := r.Text()
	if err != nil {
		return false, err
	}
	have := map[string]bool{}
	var tokens []terms.Token
	for _, text := range []string{name, r.ChatID(), reason} {
		tokens = s.analyzer.Tokens(tokens[:0], text)
		for _, t := range tokens {
			for _, term := range t.Terms {
				have[term] = true
			}
		}
	}
	missing := 0
	for _, w := range e.words {
		if !slices.ContainsFunc(w.terms, func(term string) bool { return have[term] }) {
			missing++
		}
	}
	return missing <= e.missing, nil
}

// page runs the query.
func (s *search) page() (readmodel.RankedPage, error) {
	words, err := s.words(s.query.Words, &s.forTerms)
	if err != nil || len(words) == 0 {
		return readmodel.RankedPage{}, err
	}
	e, err := s.evaluate(words, s.query)
	if err != nil {
		return readmodel.RankedPage{}, err
	}
	if err := s.relax(e, s.query); err != nil {
		return readmodel.RankedPage{}, err
	}
	page := e.page
	if page.Total == 0 {
		page.Suggestions, err = s.suggest(e)
		return page, err
	}
	best, err := s.best(e, s.query.Skip+s.query.Limit)
	if err != nil {
		return page, err
	}
	for _, c := range best[min(s.query.Skip, len(best)):] {
		hit, err := s.hit(c.ref, words)
		if err != nil {
			return page, err
		}
		page.Hits = append(page.Hits, hit)
	}
	page.HasMore = s.query.Skip+len(page.Hits) < page.Total
	return page, nil
}

// candidate is a document with its score.
type candidate struct {
	score float32
	ref   readmodel.RowRef
}

// best returns the n best matches, best first.
func (s *search) best(e *evaluation, n int) ([]candidate, error) {
	top := newTop(n, s.view)
	for i := range s.parts {
		if e.accepted[i].IsEmpty() {
			continue
		}
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		p := &s.parts[i]
		docs := e.accepted[i].ToArray()
		scores := make([]float32, len(docs))
		for w := range e.words {
			for _, one := range e.found[i][w].postings {
				if err := s.score(p, docs, scores, one, e.accepted[i], e.idf[w]); err != nil {
					return nil, err
				}
			}
		}
		for n, doc := range docs {
			top.add(candidate{scores[n], p.refs[doc]})
		}
	}
	return top.sorted(), nil
}

// sparse is a ratio: if a term occurs in more than sparse times the accepted documents, the two are
// intersected first, since reading all its postings costs more.
const sparse = 16

// score adds the score of a term in a field to the accepted documents.
func (s *search) score(p *part, docs []uint32, scores []float32, one postings, accepted *roaring.Bitmap, idf float64) error {
	if one.bitmap.GetCardinality() > sparse*accepted.GetCardinality() {
		both := roaring.And(one.bitmap, accepted)
		if both.IsEmpty() {
			return nil
		}
		one.iterator.(segment.OptimizablePostingsIterator).ReplaceActual(both)
	}
	weight := float32(idf * weights()[one.field] * (k1 + 1))
	average := max(float64(s.lengths[one.field])/float64(s.docs), 1)
	short, long := float32(k1*(1-b)), float32(k1*b/average)
	for at := 0; ; {
		posting, err := one.iterator.Next()
		if err != nil {
			return fmt.Errorf("postings: %w", err)
		}
		if posting == nil {
			return nil
		}
		doc := uint32(posting.Number())
		for docs[at] < doc {
			if at++; at == len(docs) {
				return nil
			}
		}
		if docs[at] == doc {
			frequency := float32(posting.Frequency())
			scores[at] += weight * frequency / (frequency + short + long*float32(p.table.lengths[doc][one.field]))
		}
	}
}

// top collects the best candidates, at most twice limit of them.
type top struct {
	limit int
	view  *readmodel.View
	kept  []candidate
	full  bool // the first limit of kept are sorted; a worse candidate cannot be one of the best
}

func newTop(limit int, v *readmodel.View) *top { return &top{limit: limit, view: v} }

// compare orders candidates, the better one first: by score, then by entry id, then by list.
func (t *top) compare(a, b candidate) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	if a.ref == b.ref {
		return 0
	}
	return cmp.Or(strings.Compare(t.view.ShownAt(a.ref).ID(), t.view.ShownAt(b.ref).ID()), cmp.Compare(a.ref, b.ref))
}

func (t *top) add(c candidate) {
	if t.full && t.compare(c, t.kept[t.limit-1]) > 0 {
		return
	}
	if t.kept = append(t.kept, c); len(t.kept) == 2*t.limit {
		t.kept, t.full = t.sorted(), true
	}
}

// sorted returns the best, best first.
func (t *top) sorted() []candidate {
	slices.SortFunc(t.kept, t.compare)
	return t.kept[:min(len(t.kept), t.limit)]
}

// hit finds the matches of the words in a row.
func (s *search) hit(ref readmodel.RowRef, words []word) (readmodel.RankedHit, error) {
	h := readmodel.RankedHit{Row: s.view.ShownAt(ref)}
	name, reason, err := h.Row.Text()
	if err != nil {
		return h, err
	}
	h.Matches = s.places(h.Matches, readmodel.InName, name, words)
	h.Matches = s.places(h.Matches, readmodel.InReason, reason, words)
	return h, nil
}

// places appends the positions of the words in a text. Of a token and its parts it names those that
// match, the whole first, and none twice.
func (s *search) places(dst []readmodel.Match, field readmodel.MatchField, text string, words []word) []readmodel.Match {
	end := 0
	for _, t := range s.analyzer.Tokens(nil, text) {
		if t.Start < end || !slices.ContainsFunc(words, func(w word) bool { return w.has(t.Terms) }) {
			continue
		}
		dst = append(dst, readmodel.Match{Field: field, Start: t.Start, End: t.End})
		end = t.End
	}
	return dst
}
