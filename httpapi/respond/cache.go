package respond

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
)

// Cache stores the bodies of responses that are requested again, in every encoding in which they
// were requested. A body is a function of its query and of the content that its tag names. So a
// body whose tag still names the content is still right, and nothing has to be invalidated.
//
// A body is stored only if it is requested twice while its content stays the same, so a crawler, or
// a registry that changes with every request, costs next to nothing. Q is the type of a parsed
// query. Any goroutine may use the cache.
type Cache[Q any] struct {
	cache *otter.Cache[Key, *Saved[Q]]
}

const (
	// MaxBodies is a bound for NewCache that is enough for a registry.
	MaxBodies   = 64 << 20 // bytes of all bodies, by estimate
	entryWeight = 512      // bytes of an entry besides its bodies, about
)

// Key is a query string as it was written: a known one need not be parsed. Another spelling is
// another key.
type Key struct {
	Route uint8
	Raw   string
}

// Saved is a cached body, or only the record that it was requested once.
type Saved[Q any] struct {
	Query  *Q
	key    Key
	tag    string // "": there was no response
	body   *Body  // nil if it was only requested once
	weight uint32
}

// NewCache returns an empty cache of at most bytes bytes.
func NewCache[Q any](bytes uint64) (*Cache[Q], error) {
	cache, err := otter.New(&otter.Options[Key, *Saved[Q]]{
		MaximumWeight: bytes,
		Weigher:       func(_ Key, s *Saved[Q]) uint32 { return s.weight },
		Executor:      func(f func()) { f() }, // no goroutine outlives its caller
	})
	if err != nil {
		return nil, fmt.Errorf("cache of bodies: %w", err)
	}
	return &Cache[Q]{cache}, nil
}

// Find returns the cached body of a query string, of any content, or only the parsed query. Its
// error is parse's.
func (b *Cache[Q]) Find(key Key, parse func(raw string) (Q, error)) (*Saved[Q], error) {
	if saved, ok := b.cache.GetIfPresent(key); ok {
		return saved, nil
	}
	key.Raw = strings.Clone(key.Raw) // the cache must not retain the request
	q, err := parse(key.Raw)
	return &Saved[Q]{key: key, Query: &q}, err
}

// For returns the cached body of the content that the tags name, or nil.
func (s *Saved[Q]) For(tags *Tags) *Body {
	if s.tag != tags.Plain() {
		return nil
	}
	return s.body
}

// Save caches a copy of the body if the last request of its key was for the same content. Else it only
// records the request.
func (b *Cache[Q]) Save(last *Saved[Q], tags *Tags, body []byte) {
	s := &Saved[Q]{key: last.key, Query: last.Query, tag: tags.Plain(), weight: entryWeight + uint32(len(last.key.Raw))}
	if last.tag == s.tag {
		s.body = NewBody(slices.Clone(body))
		s.weight += 2 * uint32(len(body)) // estimates the encoded variants
	}
	b.cache.Set(s.key, s)
}

// Clear empties the cache.
func (b *Cache[Q]) Clear() { b.cache.InvalidateAll() }

// Len returns the number of entries.
func (b *Cache[Q]) Len() int { return b.cache.EstimatedSize() }

// Size returns the size of the entries in bytes, by estimate.
func (b *Cache[Q]) Size() uint64 { return b.cache.WeightedSize() }

// Body is a body, in every encoding in which it was requested. Any goroutine may use it.
type Body struct {
	sharing  sharing
	variants [numEncodings]atomic.Pointer[variant]
}

// variant is a body in one encoding, and its length as a header value.
type variant struct {
	body   []byte
	length []string
}

func newVariant(body []byte) *variant { return &variant{body, []string{strconv.Itoa(len(body))}} }

// NewBody returns a body of these bytes, which must not change while it is used.
func NewBody(body []byte) *Body {
	b := &Body{}
	b.variants[identity].Store(newVariant(body))
	return b
}

// Plain returns the unencoded body.
func (b *Body) Plain() []byte { return b.variants[identity].Load().body }

// encoded returns the body in the encoding e. It encodes the body at the first request. A nil body
// is empty.
func (b *Body) encoded(e encoding, comp *compressor) (*variant, error) {
	if b == nil {
		return newVariant(nil), nil
	}
	if v := b.variants[e].Load(); v != nil {
		return v, nil
	}
	text, err := comp.appendEncoded(nil, b.Plain())
	if err != nil {
		return nil, err
	}
	v := newVariant(text)
	b.variants[e].Store(v)
	return v, nil
}
