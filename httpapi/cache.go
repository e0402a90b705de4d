package httpapi

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
)

// bodyCache remembers the bodies of answers that are asked for again, in every encoding they were asked for in.
// A body is a function of its query and of the content that its tag names. So a body whose tag is
// still the content's is still the answer, and nothing has to be invalidated.
//
// A body is kept only once it is asked for twice while its content stands still, so that a crawler, or a
// registry that changes with every request, costs next to nothing. Any goroutine may use the cache.
type bodyCache struct {
	cache *otter.Cache[bodyKey, *savedBody]
}

const (
	maxBodies   = 64 << 20 // bytes of all bodies, by estimate
	entryWeight = 512      // bytes that an entry takes beside its bodies, about
)

// bodyKey is a query string as it was written: a known one need not be parsed. Another spelling of it is
// another key.
type bodyKey struct {
	route uint8
	raw   string
}

// savedBody is a remembered answer, or only the memory that it was asked for once.
type savedBody struct {
	key      bodyKey
	query    *query
	tag      string
	variants [numEncodings]atomic.Pointer[variant] // none: it was asked for once
	weight   uint32
}

// variant is a body in one encoding, and its length as a header value.
type variant struct {
	body   []byte
	length []string
}

func newVariant(body []byte) *variant { return &variant{body, []string{strconv.Itoa(len(body))}} }

// newBodyCache returns an empty cache that keeps at most that many bytes.
func newBodyCache(bytes uint64) (*bodyCache, error) {
	cache, err := otter.New(&otter.Options[bodyKey, *savedBody]{
		MaximumWeight: bytes,
		Weigher:       func(_ bodyKey, s *savedBody) uint32 { return s.weight },
		Executor:      func(f func()) { f() }, // no goroutine that nobody waits for
	})
	if err != nil {
		return nil, fmt.Errorf("cache of bodies: %w", err)
	}
	return &bodyCache{cache}, nil
}

// find returns what is remembered for a query string, of whatever content, or nil.
func (b *bodyCache) find(key bodyKey) *savedBody {
	saved, _ := b.cache.GetIfPresent(key)
	return saved
}

// matches reports whether s is of the content that the tags name. A nil s is of none.
func (s *savedBody) matches(tags *tagSet) bool {
	return s != nil && s.tag == tags.quoted[identity]
}

// save remembers a copy of the body if it was asked for before, else that it was asked for.
func (b *bodyCache) save(a *answer, body []byte, again bool) {
	s := &savedBody{key: a.key, query: a.query, tag: a.tags.quoted[identity], weight: entryWeight + uint32(len(a.key.raw))}
	if again {
		s.variants[identity].Store(newVariant(append([]byte(nil), body...)))
		s.weight += 2 * uint32(len(body)) // the encoded variants, when they come, are a fraction of it
	}
	b.cache.Set(a.key, s)
}

// in returns the saved body in the encoding e, which it encodes when it is first asked for.
func (s *savedBody) in(e encoding, c *compressor) (*variant, error) {
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
