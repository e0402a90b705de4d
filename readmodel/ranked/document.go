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

// The fields of a document, by the names that bleve knows them by. Those that are scored come
// first.
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

// fieldNames are those of all fields.
func fieldNames() [numFields]string { return [...]string{"n", "i", "r", wordField, storedField, "_id"} }

// lengths are numbers of terms, by field: of one document, or of all together.
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

// documentID is by what a document is known: the number of its list and its entry id. Ids of
// hexadecimal digits are packed, two digits in a byte: every segment has a dictionary of them.
func documentID(r *readmodel.Row) string {
	list, _ := r.List().Index()
	id := r.ID()
	if packed, err := hex.DecodeString(id); err == nil && len(packed) >= 4 && hex.EncodeToString(packed) == id {
		return string(append([]byte{packedID + byte(list)}, packed...))
	}
	return string(append([]byte{plainID + byte(list)}, id...))
}

// What a document id begins with, plus the number of the list.
const (
	plainID  = '0'
	packedID = 'a'
)

// rowOf finds the row that a document was made of.
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

// wordKey is a word in the dictionary of words: without diacritics, and where it has some, a zero
// byte and the word as written. Only words that are none of their terms are there: the dictionaries
// of terms have the others.
func wordKey(t *terms.Token) string {
	if t.Folded == t.Plain {
		return t.Plain
	}
	return t.Plain + "\x00" + t.Folded
}

// maxWord bounds the keys, in bytes, that are in the dictionary: nobody misspells longer ones.
const maxWord = 48

// stamp is what a document keeps of its row: the sequence of its last change, and how many terms it
// has.
type stamp struct {
	sequence uint64
	lengths  lengths
}

func (s *stamp) append(b []byte) []byte {
	b = binary.AppendUvarint(b, s.sequence)
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
	s.sequence = next()
	for i := range s.lengths {
		s.lengths[i] = next()
	}
	return s, err
}

// analyst makes documents of rows, a batch at a time. One goroutine uses it, and what bleve calls
// while it takes the batch.
//
// A batch's memory is used again for the next one: garbage costs the read model's whole heap a
// collection.
type analyst struct {
	analyzer   *terms.Analyzer
	tokens     []terms.Token
	remembered map[string][]analyzed // by what stands between two spaces of a reason
	places     map[string]int        // of the terms of the field under way, in terms
	pace       func()                // called often, since it may rest; nil: nothing

	documents []document
	terms     []term
	stamps    []byte
	fields    [2][numFields]field
	visits    int                // that are under way
	counts    []*index.TokenFreq // by frequency
}

// analyzed is a term of a token and, with the first, the token's key in the dictionary of words, or
// "".
type analyzed struct{ term, key string }

// term is a term of a field of a document. Its count is zero where it is not scored.
type term struct {
	text  string
	count int
}

// maxFrequency bounds how often a term counts in a field.
const maxFrequency = 1000

// maxRemembered bounds what an analyst remembers before it forgets all of it.
const maxRemembered = 1 << 15

// begin forgets the batch before and makes room for another.
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

// end gives the memory of large batches back.
func (a *analyst) end() {
	if cap(a.documents) > 1024 {
		a.documents, a.terms, a.stamps = nil, nil, nil
	}
}

// add analyzes a row for the batch, which has room for it.
func (a *analyst) add(r *readmodel.Row) error {
	name, reason, err := r.Text()
	if err != nil {
		return err
	}
	a.documents = append(a.documents, document{analyst: a, id: documentID(r)})
	d := &a.documents[len(a.documents)-1]
	s := stamp{sequence: r.Sequence()}
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
		a.places = map[string]int{} // clearing it costs what it once held
	}
	d.lengths = s.lengths
	begin := len(a.stamps)
	a.stamps = s.append(a.stamps)
	d.stamp = a.stamps[begin:len(a.stamps):len(a.stamps)]
	return nil
}

// each calls f with what stands between the spaces of a text, or else with the text: no token goes
// across a space.
func each(text string, split bool, f func(string)) {
	if !split {
		f(text)
		return
	}
	for word := range strings.SplitSeq(text, " ") {
		f(word)
	}
}

// analyze returns the tokens of a piece of text. Words of reasons come again and again, so that
// they are remembered.
func (a *analyst) analyze(text string, field int) []analyzed {
	if field == inReason {
		if known, ok := a.remembered[text]; ok {
			return known
		}
		if len(text) <= maxWord {
			text = strings.Clone(text) // else what is remembered would keep the whole reason
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

// count counts a term of the field under way.
func (a *analyst) count(text string) {
	if i, ok := a.places[text]; ok {
		a.terms[i].count++
		return
	}
	a.places[text] = len(a.terms)
	a.terms = append(a.terms, term{text, 1})
}

// fieldTerm is a term as a field has it. In ids the digits are packed, two in a byte: that halves
// the dictionary.
func fieldTerm(field int, term string) string {
	if field != inID || len(term) < 8 || !allDigits(term) {
		return term
	}
	packed := make([]byte, 1, 1+(len(term)+1)/2)
	packed[0] = byte(len(term) & 1) // no other term begins so
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

// document is an analyzed row as bleve takes it.
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

// AddIDField is part of index.Document: the field that bleve finds documents by is always there.
func (d *document) AddIDField() {}

// VisitFields calls visit with every field of the document. A field is another's as soon as the
// next document is visited, but for the first document of a batch, during whose visit bleve visits
// all.
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

// AnalyzedTokenFrequencies returns the field's terms. bleve asks twice for each document, and keeps
// none.
func (f *field) AnalyzedTokenFrequencies() index.TokenFrequencies {
	if f.filled {
		return f.found
	}
	if f.found == nil || len(f.found) > 1024 {
		f.found = index.TokenFrequencies{} // clearing it costs what it once held
	}
	clear(f.found)
	for i := range f.terms {
		f.found[f.terms[i].text] = f.analyst.frequency(f.terms[i].count)
	}
	f.filled = true
	return f.found
}

// frequency returns the number as bleve takes it. All terms of a frequency share it.
func (a *analyst) frequency(n int) *index.TokenFreq {
	n = min(n, maxFrequency)
	for len(a.counts) <= n {
		f := &index.TokenFreq{}
		f.SetFrequency(len(a.counts))
		a.counts = append(a.counts, f)
	}
	return a.counts[n]
}
