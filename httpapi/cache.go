package httpapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
)

// bodyCache remembers the bodies of answers that are asked for again, in every encoding they were
// asked for in. A body is a function of its query and of the content that its tag names. So a body
// whose tag is still the content's is still the answer, and nothing has to be invalidated.
//
// A body is kept only once it is asked for twice while its content stands still, so that a crawler,
// or a registry that changes with every request, costs next to nothing. Any goroutine may use the
// cache.
type bodyCache struct {
	cache *otter.Cache[bodyKey, *savedBody]
}

const (
	maxBodies   = 64 << 20 // bytes of all bodies, by estimate
	entryWeight = 512      // bytes that an entry takes beside its bodies, about
)

// bodyKey is a query string as it was written: a known one need not be parsed. Another spelling of
// it is another key.
type bodyKey struct {
	route uint8
	raw   string
}

// savedBody is a remembered answer, or only the memory that it was asked for once.
type savedBody struct {
	key     bodyKey
	query   *query
	tag     string   // "": it was never answered
	content *content // nil: it was asked for once
	weight  uint32
}

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

// find returns what is remembered for a query string, of whatever content, or only what the string
// means.
func (b *bodyCache) find(key bodyKey, parse func(raw string) (query, error)) (*savedBody, error) {
	if saved, ok := b.cache.GetIfPresent(key); ok {
		return saved, nil
	}
	key.raw = strings.Clone(key.raw) // the cache may keep it, and must not keep the request
	q, err := parse(key.raw)
	return &savedBody{key: key, query: &q}, err
}

// of returns the remembered body of the content that the tags name, or nil.
func (s *savedBody) of(tags *tagSet) *content {
	if s.tag != tags.quoted[identity] {
		return nil
	}
	return s.content
}

// save remembers a copy of the body if last was of the same content, else that it was asked for.
func (b *bodyCache) save(last *savedBody, tags *tagSet, body []byte) {
	s := &savedBody{key: last.key, query: last.query, tag: tags.quoted[identity], weight: entryWeight + uint32(len(last.key.raw))}
	if last.tag == s.tag {
		s.content = newContent(slices.Clone(body))
		s.weight += 2 * uint32(len(body)) // the encoded variants, when they come, are a fraction of it
	}
	b.cache.Set(s.key, s)
}

// content is a body, in every encoding that it was asked for in. Any goroutine may use it.
type content struct {
	variants [numEncodings]atomic.Pointer[variant]
}

// variant is a body in one encoding, and its length as a header value.
type variant struct {
	body   []byte
	length []string
}

func newVariant(body []byte) *variant { return &variant{body, []string{strconv.Itoa(len(body))}} }

// newContent returns content with that body, which does not change while the content is used.
func newContent(body []byte) *content {
	c := &content{}
	c.variants[identity].Store(newVariant(body))
	return c
}

// plain returns the body as it is.
func (c *content) plain() []byte { return c.variants[identity].Load().body }

// in returns the body in the encoding e, which it encodes when it is first asked for. A nil content
// is empty.
func (c *content) in(e encoding, comp *compressor) (*variant, error) {
	if c == nil {
		return newVariant(nil), nil
	}
	if v := c.variants[e].Load(); v != nil {
		return v, nil
	}
	encoded, err := comp.appendEncoded(nil, c.plain(), e)
	if err != nil {
		return nil, err
	}
	v := newVariant(encoded)
	c.variants[e].Store(v)
	return v, nil
}
