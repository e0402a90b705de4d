package ranked

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	index "github.com/blevesearch/bleve_index_api"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/terms"
)

// The fields of a document, by their names in bleve. The scored ones come first.
const (
	inName = iota
	inID
	inReason
	inWords  // the words as written: see wordKey
	isStored // see stamp
	isID
	numFields

	numScored  = inReason + 1
	numIndexed = inWords + 1
)

const (
	wordField   = "w"
	storedField = "s"
)

// scoredFields are the names of the fields that are scored.
func scoredFields() [numScored]string { return [...]string{"n", "i", "r"} }

// fieldNames are the names of all fields.
func fieldNames() [numFields]string { return [...]string{"n", "i", "r", wordField, storedField, "_id"} }

// lengths are numbers of terms by field: of one document, or of several together.
type lengths [numScored]uint64

func (l *lengths) add(o lengths) {
	for i := range l {
		l[i] += o[i]
	}
}

func (l *lengths) sub(o lengths) {
	for i := range l {
		l[i] -= o[i]
	}
}

// documentID returns the id of a row's document: the number of its list and its entry id. Ids of
// hexadecimal digits are packed, two digits in a byte, because every segment has a dictionary of
// ids.
func documentID(r *readmodel.Row) string {
	list, _ := r.List().Index()
	id := r.ID()
	if packed, err := hex.DecodeString(id); err == nil && len(packed) >= 4 && hex.EncodeToString(packed) == id {
		return string(append([]byte{packedID + byte(list)}, packed...))
	}
	return string(append([]byte{plainID + byte(list)}, id...))
}

// The first byte of a document id, to which the number of the list is added.
const (
	plainID  = '0'
	packedID = 'a'
)

// rowOf finds the row of a document.
func rowOf(v *readmodel.View, documentID string) *readmodel.Row {
	if documentID == "" {
		return nil
	}
	list, id := documentID[0]-plainID, documentID[1:]
	if documentID[0] >= packedID {
		list, id = documentID[0]-packedID, hex.EncodeToString([]byte(id))
	}
	if int(list) >= events.NumLists {
		return nil
	}
	if r := v.Entry(events.Lists()[list], id); r != nil && v.ShownAt(r.Ref()) == r {
		return r
	}
	return nil
}

// wordKey returns the key of a word in the dictionary of words: the word without diacritics, and,
// if it has some, a zero byte and the word as written. A word that is one of its own terms has no
// key: it is in the dictionaries of terms.
func wordKey(t *terms.Token) string {
	if t.Folded == t.Plain {
		return t.Plain
	}
	return t.Plain + "\x00" + t.Folded
}

// maxWord bounds the keys in the dictionary, in bytes. Longer words get no suggestions.
const maxWord = 48

// stamp is the stored data of a document: what its row shows (Row.Content), and its numbers of terms.
type stamp struct {
	content uint64
	lengths lengths
}

func (s *stamp) append(b []byte) []byte {
	b = binary.AppendUvarint(b, s.content)
	for _, n := range s.lengths {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

var errStamp = errors.New("it holds a document that this program did not write")

func decodeStamp(b []byte) (s stamp, err error) {
	next := func() (n uint64) {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			err = errStamp
			return 0
		}
		b = b[size:]
		return n
	}
	s.content = next()
	for i := range s.lengths {
		s.lengths[i] = next()
	}
	return s, err
}

// analyst turns rows into documents, a batch at a time. One goroutine uses it, and bleve's calls
// while it takes the batch.
//
// The next batch reuses the memory: garbage would make the collector scan the read model's whole
// heap.
type analyst struct {
	analyzer   *terms.Analyzer
	tokens     []terms.Token
	remembered map[string][]analyzed // by the text between two spaces of a reason
	places     map[string]int        // of the terms of the current field, in terms
	pace       func()                // called often, since it may rest; may be nil

	documents []document
	terms     []term
	stamps    []byte
	fields    [2][numFields]field
	visits    int                // visits in progress
	counts    []*index.TokenFreq // by frequency
}

// analyzed is a term of a token and, with the first, the token's key in the dictionary of words, or
// "".
type analyzed struct{ term, key string }

// term is a term in a field of a document. Its count is zero if the field is not scored.
type term struct {
	text  string
	count int
}

// maxFrequency bounds how often a term counts in a field.
const maxFrequency = 1000

// maxRemembered bounds an analyst's cache; when full, it is cleared.
const maxRemembered = 1 << 15

// begin starts a batch with room for rows rows.
func (a *analyst) begin(rows int) {
	if a.remembered == nil {
		a.remembered, a.places = map[string][]analyzed{}, map[string]int{}
	}
	if cap(a.documents) < rows {
		a.documents = make([]document, 0, rows)
	}
	clear(a.terms)
	a.documents, a.terms, a.stamps = a.documents[:0], a.terms[:0], a.stamps[:0]
}

// end releases the memory of a large batch.
func (a *analyst) end() {
	if cap(a.documents) > 1024 {
		a.documents, a.terms, a.stamps = nil, nil, nil
	}
}

// add analyzes a row for the batch, which must have room for it.
func (a *analyst) add(r *readmodel.Row) error {
	name, reason, err := r.Text()
	if err != nil {
		return err
	}
	a.documents = append(a.documents, document{analyst: a, id: documentID(r)})
	d := &a.documents[len(a.documents)-1]
	s := stamp{content: r.Content()}
	var keys [8]string
	words := keys[:0]
	for i, text := range [...]string{inName: name, inID: r.ChatID(), inReason: reason} {
		d.fields[i].begin = len(a.terms)
		clear(a.places)
		each(text, i == inReason, func(text string) {
			for _, t := range a.analyze(text, i) {
				s.lengths[i]++
				a.count(t.term)
				if t.key != "" {
					words = append(words, t.key)
				}
			}
		})
		d.fields[i].end = len(a.terms)
	}
	d.fields[inWords].begin = len(a.terms)
	clear(a.places)
	for _, key := range words {
		if _, ok := a.places[key]; !ok {
			a.places[key] = len(a.terms)
			a.terms = append(a.terms, term{key, 0})
		}
	}
	d.fields[inWords].end = len(a.terms)
	if len(a.places) > 1024 {
		a.places = map[string]int{} // clearing a large map takes as long as it once held items
	}
	d.lengths = s.lengths
	begin := len(a.stamps)
	a.stamps = s.append(a.stamps)
	d.stamp = a.stamps[begin:len(a.stamps):len(a.stamps)]
	return nil
}

// each calls f with each piece of text between spaces if split is set, else with the whole text. No
// token contains a space.
func each(text string, split bool, f func(string)) {
	if !split {
		f(text)
		return
	}
	for word := range strings.SplitSeq(text, " ") {
		f(word)
	}
}

// analyze returns the tokens of a piece of text. It caches those of reasons, whose words repeat.
func (a *analyst) analyze(text string, field int) []analyzed {
	if field == inReason {
		if known, ok := a.remembered[text]; ok {
			return known
		}
		if len(text) <= maxWord {
			text = strings.Clone(text) // the cache would otherwise retain the whole reason
		}
	}
	a.tokens = a.analyzer.Tokens(a.tokens[:0], text)
	all := make([]analyzed, 0, len(a.tokens))
	for i := range a.tokens {
		t := &a.tokens[i]
		for n, term := range t.Terms {
			one := analyzed{term: fieldTerm(field, term)}
			if key := wordKey(t); n == 0 && field != inID && !slices.Contains(t.Terms, t.Plain) && len(key) <= maxWord {
				one.key = key
			}
			all = append(all, one)
		}
	}
	if field == inReason && len(text) <= maxWord {
		if len(a.remembered) == maxRemembered {
			clear(a.remembered)
		}
		a.remembered[text] = all
	}
	return all
}

// count counts a term of the current field.
func (a *analyst) count(text string) {
	if i, ok := a.places[text]; ok {
		a.terms[i].count++
		return
	}
	a.places[text] = len(a.terms)
	a.terms = append(a.terms, term{text, 1})
}

// fieldTerm returns the form of a term in a field. In chat ids, digits are packed, two in a byte:
// that halves the dictionary.
func fieldTerm(field int, term string) string {
	if field != inID || len(term) < 8 || !allDigits(term) {
		return term
	}
	packed := make([]byte, 1, 1+(len(term)+1)/2)
	packed[0] = byte(len(term) & 1) // no other term begins with this byte
	for i := 0; i < len(term); i += 2 {
		two := term[i] - '0'
		if i+1 < len(term) {
			two = two<<4 | term[i+1] - '0'
		}
		packed = append(packed, two)
	}
	return string(packed)
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// document is an analyzed row as a bleve document.
type document struct {
	analyst *analyst
	id      string
	stamp   []byte
	lengths lengths
	fields  [numIndexed]struct{ begin, end int } // in the analyst's terms
}

func (d *document) ID() string                                 { return d.id }
func (d *document) Size() int                                  { return 0 }
func (d *document) VisitComposite(index.CompositeFieldVisitor) {}
func (d *document) HasComposite() bool                         { return false }
func (d *document) NumPlainTextBytes() uint64                  { return 0 }
func (d *document) StoredFieldsBytes() uint64                  { return 0 }
func (d *document) Indexed() bool                              { return false }

// AddIDField implements index.Document. The id field that bleve finds documents by is always there.
func (d *document) AddIDField() {}

// VisitFields calls visit with every field of the document. The visited field is valid until the
// next document is visited. While bleve visits the first document of a batch, it also visits all
// others.
func (d *document) VisitFields(visit index.FieldVisitor) {
	a := d.analyst
	if a.pace != nil {
		a.pace()
	}
	fields := &a.fields[a.visits]
	a.visits++
	defer func() { a.visits-- }()
	names := fieldNames()
	for i := range names {
		f := &fields[i]
		f.analyst, f.name, f.filled = a, names[i], false
		switch {
		case i < numIndexed:
			if f.terms = a.terms[d.fields[i].begin:d.fields[i].end]; len(f.terms) == 0 {
				continue
			}
			if f.options, f.length = index.IndexField, 0; i == inWords {
				f.options |= index.SkipFreqNorm
			} else {
				f.length = int(d.lengths[i])
			}
		case i == isStored:
			f.options, f.value = index.StoreField, d.stamp
		default:
			f.id[0] = term{d.id, 1}
			f.terms, f.length = f.id[:], 1
			f.options, f.value = index.IndexField|index.StoreField, []byte(d.id)
		}
		visit(f)
	}
}

// field is a field of the document that is being visited.
type field struct {
	analyst *analyst
	name    string
	options index.FieldIndexingOptions
	value   []byte // what is stored
	length  int
	terms   []term
	id      [1]term
	found   index.TokenFrequencies // of terms
	filled  bool
}

func (f *field) Name() string                        { return f.name }
func (f *field) Value() []byte                       { return f.value }
func (f *field) ArrayPositions() []uint64            { return nil }
func (f *field) EncodedFieldType() byte              { return 't' }
func (f *field) Analyze()                            {} // done
func (f *field) Options() index.FieldIndexingOptions { return f.options }
func (f *field) AnalyzedLength() int                 { return f.length }
func (f *field) NumPlainTextBytes() uint64           { return 0 }

// AnalyzedTokenFrequencies returns the field's terms. bleve calls it twice for each document, and
// does not retain the result.
func (f *field) AnalyzedTokenFrequencies() index.TokenFrequencies {
	if f.filled {
		return f.found
	}
	if f.found == nil || len(f.found) > 1024 {
		f.found = index.TokenFrequencies{} // clearing a large map takes as long as it once held items
	}
	clear(f.found)
	for i := range f.terms {
		f.found[f.terms[i].text] = f.analyst.frequency(f.terms[i].count)
	}
	f.filled = true
	return f.found
}

// frequency returns n as bleve's type. All terms of one frequency share a value.
func (a *analyst) frequency(n int) *index.TokenFreq {
	n = min(n, maxFrequency)
	for len(a.counts) <= n {
		f := &index.TokenFreq{}
		f.SetFrequency(len(a.counts))
		a.counts = append(a.counts, f)
	}
	return a.counts[n]
}
