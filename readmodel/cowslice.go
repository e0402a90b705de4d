package readmodel

import "slices"

// chunkLen is how many values one change copies: 4 KiB of pointers or numbers.
const chunkLen = 512

// cowSlice holds one value for each slot. It is copied on write, chunk by chunk, so the copies of views never
// change. The zero value is empty. One goroutine owns a cowSlice; any goroutine may read a view's copy.
type cowSlice[T any] struct {
	chunks     []*chunk[T]
	generation uint64 // counts the copies for views, which may share the chunks of older generations
}

type chunk[T any] struct {
	generation uint64 // of the cowSlice when the chunk was made
	values     [chunkLen]T
}

// get returns the value of a slot, or the zero value if none was set.
func (s *cowSlice[T]) get(slot uint32) (v T) {
	if n := int(slot / chunkLen); n < len(s.chunks) {
		return s.chunks[n].values[slot%chunkLen]
	}
	return v
}

func (s *cowSlice[T]) set(slot uint32, v T) {
	n := int(slot / chunkLen)
	for len(s.chunks) <= n {
		s.chunks = append(s.chunks, &chunk[T]{generation: s.generation})
	}

	// A view may have the chunk of an older generation: change a copy of it.
	if s.chunks[n].generation != s.generation {
		own := *s.chunks[n]
		own.generation = s.generation
		s.chunks[n] = &own
	}
	s.chunks[n].values[slot%chunkLen] = v
}

// copyForView returns a copy that never changes. The copy shares all chunks with s. From then on, s copies a
// chunk before changing it.
func (s *cowSlice[T]) copyForView() cowSlice[T] {
	s.generation++
	return cowSlice[T]{chunks: slices.Clone(s.chunks)}
}
