package gramindex

import (
	"github.com/blevesearch/bleve/v2/document"
	index "github.com/blevesearch/bleve_index_api"
)

// Text is one of the texts of a document.
type Text string

// The texts. Names is a part of All.
const (
	All   Text = "a"
	Names Text = "n"
)

// Document is what is indexed under a number.
type Document struct {
	Number     uint32
	All, Names string // folded; fields parted by a newline
}

func (d *Document) bleve(id string) index.Document {
	doc := document.NewDocument(id)
	doc.AddField(&gramField{name: string(All), text: d.All})
	doc.AddField(&gramField{name: string(Names), text: d.Names})
	return doc
}

// gramField is a text as the set of its grams. It implements bleve's index.Field: analysis makes
// the set, and the options leave out everything but the inverted lists.
type gramField struct {
	name, text string
	grams      index.TokenFrequencies
}

// Analyze makes the set of grams.
func (f *gramField) Analyze() {
	f.grams = make(index.TokenFrequencies, len(f.text))
	eachGram(f.text, func(gram string) {
		if _, known := f.grams[gram]; !known {
			t := &index.TokenFreq{Term: []byte(gram)}
			t.SetFrequency(1)
			f.grams[gram] = t
		}
	})
}

// Size is an estimate for statistics.
func (f *gramField) Size() int { return len(f.text) }

// Name is the field's name.
func (f *gramField) Name() string { return f.name }

// Value is what would be stored.
func (f *gramField) Value() []byte { return nil }

// ArrayPositions is for fields of several values.
func (f *gramField) ArrayPositions() []uint64 { return nil }

// EncodedFieldType is that of a text.
func (f *gramField) EncodedFieldType() byte { return 't' }

// Options asks for the inverted list alone.
func (f *gramField) Options() index.FieldIndexingOptions {
	return index.IndexField | index.SkipFreqNorm
}

// AnalyzedLength is the number of grams.
func (f *gramField) AnalyzedLength() int { return len(f.grams) }

// AnalyzedTokenFrequencies is the set of grams.
func (f *gramField) AnalyzedTokenFrequencies() index.TokenFrequencies { return f.grams }

// NumPlainTextBytes is for statistics.
func (f *gramField) NumPlainTextBytes() uint64 { return uint64(len(f.text)) }
