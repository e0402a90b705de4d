package ranked

import (
	"encoding/binary"
	"errors"
	"slices"

	index "github.com/blevesearch/bleve_index_api"

	"example.org/registry/events"
	"example.org/registry/readmodel"
	"example.org/registry/readmodel/terms"
)

// The fields of a document that are indexed. The scored ones come first.
const (
	inName = iota
	inID
	inReason
	inWords // the words as written: see wordKey
	numIndexed

	numScored = inReason + 1
)

const (
	wordField   = "w"
	storedField = "s" // see stamp
)

// scoredFields are the names of the fields that are scored.
func scoredFields() [numScored]string { return [...]string{"n", "i", "r"} }

// lengths are numbers of terms by field: of one document, or of several together.
type lengths [numScored]uint32

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

// documentID returns the id of a row's document: the number of its list and its entry id.
func documentID(r *readmodel.Row) string {
	list, _ := r.List().Index()
	return string(rune('0'+list)) + r.ID()
}

// rowOf finds the row of a document.
func rowOf(v *readmodel.View, documentID string) *readmodel.Row {
	if documentID == "" {
		return nil
	}
	list := documentID[0] - '0'
	if int(list) >= events.NumLists {
		return nil
	}
	if r := v.Entry(events.Lists()[list], documentID[1:]); r != nil && v.ShownAt(r.Ref()) == r {
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
		b = binary.AppendUvarint(b, uint64(n))
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
		s.lengths[i] = uint32(next())
	}
	return s, err
}

// document is an analyzed row as a bleve document.
type document struct {
	id     string
	fields []field
	pace   func() // called often, since it may rest; may be nil
}

// newDocument analyzes a row.
func newDocument(analyzer *terms.Analyzer, r *readmodel.Row, pace func()) (*document, error) {
	name, reason, err := r.Text()
	if err != nil {
		return nil, err
	}
	id := documentID(r)
	d := &document{id: id, pace: pace, fields: make([]field, 0, numIndexed+2)}
	s, words := stamp{content: r.Content()}, index.TokenFrequencies{}
	for i, text := range [...]string{inName: name, inID: r.ChatID(), inReason: reason} {
		found := index.TokenFrequencies{}
		for _, t := range analyzer.Tokens(nil, text) {
			for _, term := range t.Terms {
				s.lengths[i]++
				countTerm(found, term)
			}
			if key := wordKey(&t); i != inID && len(t.Terms) > 0 && !slices.Contains(t.Terms, t.Plain) && len(key) <= maxWord {
				words[key] = &index.TokenFreq{}
			}
		}
		d.add(field{name: scoredFields()[i], options: index.IndexField, length: int(s.lengths[i]), terms: found})
	}
	d.add(field{name: wordField, options: index.IndexField | index.SkipFreqNorm, terms: words})
	d.fields = append(d.fields, field{name: storedField, options: index.StoreField, value: s.append(nil)})
	terms := index.TokenFrequencies{}
	countTerm(terms, id)
	d.add(field{name: "_id", options: index.IndexField | index.StoreField, length: 1, value: []byte(id), terms: terms})
	return d, nil
}

// add adds a field that is indexed, unless it is empty.
func (d *document) add(f field) {
	if len(f.terms) > 0 {
		d.fields = append(d.fields, f)
	}
}

// maxFrequency bounds how often a term counts in a field.
const maxFrequency = 1000

func countTerm(found index.TokenFrequencies, term string) {
	f := found[term]
	if f == nil {
		f = &index.TokenFreq{}
		found[term] = f
	}
	f.SetFrequency(min(f.Frequency()+1, maxFrequency))
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

// VisitFields calls visit with every field of the document.
func (d *document) VisitFields(visit index.FieldVisitor) {
	if d.pace != nil {
		d.pace()
	}
	for i := range d.fields {
		visit(&d.fields[i])
	}
}

// field is a field of a document.
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
func (f *field) NumPlainTextBytes() uint64                        { return 0 }
func (f *field) AnalyzedTokenFrequencies() index.TokenFrequencies { return f.terms }
