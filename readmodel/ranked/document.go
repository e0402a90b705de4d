package ranked

import (
	"encoding/binary"
	"errors"

	index "github.com/blevesearch/bleve_index_api"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/terms"
)

// The fields of a document, by the names that bleve knows them by. Those that are scored come first.
const (
	inName = iota
	inID
	inReason
	numScored
)

const (
	wordField   = "w" // the words as written: see wordKey
	storedField = "s" // see stamp
)

// scoredFields are the names of the fields that are scored.
func scoredFields() [numScored]string { return [...]string{"n", "i", "r"} }

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

// documentID is by what a document is known: the number of its list and its entry id.
func documentID(r *readmodel.Row) string {
	list, _ := r.List().Index()
	return string(rune('0'+list)) + r.ID()
}

// rowOf finds the row that a document was made of.
func rowOf(v *readmodel.View, documentID string) *readmodel.Row {
	if documentID == "" || int(documentID[0]-'0') >= events.NumLists {
		return nil
	}
	if r := v.Entry(events.Lists()[documentID[0]-'0'], documentID[1:]); r != nil && v.ShownAt(r.Ref()) == r {
		return r
	}
	return nil
}

// wordKey is a word in the dictionary of words: without diacritics, and where it has some, a zero byte and the word
// as written. Only words whose term is another are there: the dictionaries of terms have the others.
func wordKey(t *terms.Token) string {
	if t.Folded == t.Plain {
		return t.Plain
	}
	return t.Plain + "\x00" + t.Folded
}

// maxWord bounds the keys, in bytes, that are in the dictionary: nobody misspells longer ones.
const maxWord = 48

// stamp is what a document keeps of its row: the sequence of its last change, and how many terms it has.
type stamp struct {
	sequence uint64
	lengths  lengths
}

func (s *stamp) encode() []byte {
	b := binary.AppendUvarint(nil, s.sequence)
	for _, n := range s.lengths {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

var errStamp = errors.New("a document is not one of ours")

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

// analyst makes documents of rows. One goroutine uses it.
type analyst struct {
	analyzer *terms.Analyzer
	tokens   []terms.Token
}

// document analyses a row.
func (a *analyst) document(r *readmodel.Row) (*document, error) {
	name, reason, err := r.Text()
	if err != nil {
		return nil, err
	}
	d := &document{id: documentID(r)}
	words := index.TokenFrequencies{}
	s := stamp{sequence: r.Sequence()}
	names := scoredFields()
	for i, text := range [...]string{inName: name, inID: r.ChatID(), inReason: reason} {
		a.tokens = a.analyzer.Tokens(a.tokens[:0], text)
		f := &field{name: names[i], options: index.IndexField, length: len(a.tokens), terms: index.TokenFrequencies{}}
		for n := range a.tokens {
			t := &a.tokens[n]
			count(f.terms, t.Term)
			if key := wordKey(t); i != inID && t.Term != t.Plain && len(key) <= maxWord && words[key] == nil {
				words[key] = &index.TokenFreq{Term: []byte(key)} // of no frequency: it is not scored
			}
		}
		s.lengths[i] = uint64(len(a.tokens))
		if len(f.terms) > 0 {
			d.fields = append(d.fields, f)
		}
	}
	if len(words) > 0 {
		d.fields = append(d.fields, &field{name: wordField, options: index.IndexField | index.SkipFreqNorm, terms: words})
	}
	d.fields = append(d.fields, &field{name: storedField, options: index.StoreField, value: s.encode()})
	return d, nil
}

func count(terms index.TokenFrequencies, term string) {
	f := terms[term]
	if f == nil {
		f = &index.TokenFreq{Term: []byte(term)}
		terms[term] = f
	}
	f.SetFrequency(f.Frequency() + 1)
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// document is an analysed row as bleve takes it.
type document struct {
	id     string
	fields []*field
}

func (d *document) ID() string                                 { return d.id }
func (d *document) Size() int                                  { return 0 }
func (d *document) VisitComposite(index.CompositeFieldVisitor) {}
func (d *document) HasComposite() bool                         { return false }
func (d *document) NumPlainTextBytes() uint64                  { return 0 }
func (d *document) StoredFieldsBytes() uint64                  { return 0 }
func (d *document) Indexed() bool                              { return false }

func (d *document) VisitFields(visit index.FieldVisitor) {
	for _, f := range d.fields {
		visit(f)
	}
}

// AddIDField adds the field that bleve finds documents by.
func (d *document) AddIDField() {
	f := &field{name: "_id", options: index.IndexField | index.StoreField, value: []byte(d.id), length: 1, terms: index.TokenFrequencies{}}
	count(f.terms, d.id)
	d.fields = append(d.fields, f)
}

// field is an analysed text.
type field struct {
	name    string
	options index.FieldIndexingOptions
	value   []byte // what is stored
	length  int
	terms   index.TokenFrequencies
}

func (f *field) Name() string                                     { return f.name }
func (f *field) Value() []byte                                    { return f.value }
func (f *field) ArrayPositions() []uint64                         { return nil }
func (f *field) EncodedFieldType() byte                           { return 't' }
func (f *field) Analyze()                                         {} // done
func (f *field) Options() index.FieldIndexingOptions              { return f.options }
func (f *field) AnalyzedLength() int                              { return f.length }
func (f *field) AnalyzedTokenFrequencies() index.TokenFrequencies { return f.terms }
func (f *field) NumPlainTextBytes() uint64                        { return 0 }
