package httpapi

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
)

// pages remembers the bodies of answers that are asked for again and again, in every encoding they
// were asked for. A body is a function of its question and of the content that its tag names, so one
// whose tag is still the content's is still the answer: nothing has to be invalidated.
//
// Only what is asked for twice while its content stands still is kept, so that a crawler, or a
// registry that changes with every request, costs next to nothing. Any goroutine may use it.
type pages struct {
	cache *otter.Cache[pageKey, *savedPage]
}

// defaultPages is the bound on remembered bodies in bytes, by estimate.
const defaultPages = 64 << 20

// pageKey is a question as it was written: one that is known need not be parsed. Another spelling of
// it is another question.
type pageKey struct {
	form uint8
	raw  string // the query string
}

// savedPage is one remembered answer, or the memory that it was asked for once.
type savedPage struct {
	key      pageKey // of which the text belongs to no request
	question *question
	tag      string
	variants [numEncodings]atomic.Pointer[variant] // none at all: asked for once
	weight   uint32
}

// variant is a body and its length, ready for an answer's header.
type variant struct {
	body   []byte
	length []string
}

func newVariant(body []byte) *variant { return &variant{body, []string{strconv.Itoa(len(body))}} }

// newPages makes an empty memory of so many bytes. Zero: defaultPages.
func newPages(bytes int) (*pages, error) {
	if bytes <= 0 {
		bytes = defaultPages
	}
	cache, err := otter.New(&otter.Options[pageKey, *savedPage]{
		MaximumWeight: uint64(bytes),
		Weigher:       func(_ pageKey, p *savedPage) uint32 { return p.weight },
		Executor:      func(f func()) { f() }, // no goroutine that nobody waits for
	})
	if err != nil {
		return nil, fmt.Errorf("page cache: %w", err)
	}
	return &pages{cache}, nil
}

// emptyWeight is about what an entry takes besides its bodies.
const emptyWeight = 512

// find is what is remembered of a question, of whatever content; nil: nothing.
func (p *pages) find(key pageKey) *savedPage {
	saved, _ := p.cache.GetIfPresent(key)
	return saved
}

// of says whether s is of the content that the tags name, and whether it has the answer.
func (s *savedPage) of(tags *tagSet) (again, whole bool) {
	if s == nil || s.tag != tags.quoted[identity] {
		return false, false
	}
	return true, s.variants[identity].Load() != nil
}

// save remembers the body of a if it was asked for before, else that it was asked for. body is copied.
func (p *pages) save(a *content, body []byte, again bool) {
	s := &savedPage{key: a.key, question: a.question, tag: a.tags.quoted[identity], weight: emptyWeight + uint32(len(a.key.raw))}
	if again {
		s.variants[identity].Store(newVariant(append([]byte(nil), body...)))
		s.weight += 2 * uint32(len(body)) // the encoded variants, when they come, are a fraction of it
	}
	p.cache.Set(a.key, s)
}

// in is the answer in the encoding e, made now if it was not asked for before.
func (s *savedPage) in(e encoding, c *compressor) (*variant, error) {
	if v := s.variants[e].Load(); v != nil {
		return v, nil
	}
	encoded, err := c.appendEncoded(nil, s.variants[identity].Load().body, e)
	if err != nil {
		return nil, err
	}
	v := newVariant(encoded)
	s.variants[e].Store(v)
	return v, nil
}
