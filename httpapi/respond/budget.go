package respond

import (
	"errors"
	"sync"
	"sync/atomic"
)

// ErrFull means that a response does not fit into the Budget. Nothing of it has been sent.
var ErrFull = errors.New("too many bytes of responses are being made or sent")

// DefaultBudget is for a process that does not know how much memory it has.
const DefaultBudget = 256 << 20

// share is the part of what is left of a Budget that one response may take. So large responses are
// refused long before small ones: clients that do not read them cannot keep the rest from being
// answered.
const share = 4

// Budget bounds the bytes of all responses that are being made or sent. They are counted before
// they are made, and before the first byte is sent, so neither large entries nor clients that do
// not read multiply. Any goroutine may use it.
type Budget struct {
	limit   int64
	used    atomic.Int64
	refused atomic.Uint64
}

// NewBudget returns a Budget of so many bytes; 0 means DefaultBudget.
func NewBudget(bytes int64) *Budget {
	if bytes <= 0 {
		bytes = DefaultBudget
	}
	return &Budget{limit: bytes}
}

// Used returns the bytes that are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// Limit returns the bytes that there are.
func (b *Budget) Limit() int64 { return b.limit }

// Refused returns how many responses did not fit.
func (b *Budget) Refused() uint64 { return b.refused.Load() }

// take takes n bytes for a response that has some already. Its error is ErrFull.
func (b *Budget) take(has, n int64) error {
	for {
		used := b.used.Load()
		if has+n > (b.limit-used+has)/share {
			b.refused.Add(1)
			return ErrFull
		}
		if b.used.CompareAndSwap(used, used+n) {
			return nil
		}
	}
}

// Room returns room for one response, still empty.
func (b *Budget) Room() *Room { return &Room{budget: b} }

// Room is the part of a Budget that one response takes. One goroutine at a time may use it. The nil Room has
// no bound.
type Room struct {
	budget *Budget
	bytes  int64
}

// Take takes n more bytes, before they are made. Its error is ErrFull.
func (r *Room) Take(n int) error {
	if r == nil {
		return nil
	}
	if err := r.budget.take(r.bytes, int64(n)); err != nil {
		return err
	}
	r.bytes += int64(n)
	return nil
}

// resize takes or gives back what n bytes need.
func (r *Room) resize(n int) error {
	if r == nil {
		return nil
	}
	if more := n - int(r.bytes); more > 0 {
		return r.Take(more)
	}
	r.budget.used.Add(int64(n) - r.bytes)
	r.bytes = int64(n)
	return nil
}

// Release gives everything back.
func (r *Room) Release() { _ = r.resize(0) } // only taking can fail

// Reserve takes n bytes for what is fetched from elsewhere, until release. Its error is ErrFull.
func (b *Budget) Reserve(n int) (release func(), err error) {
	r := b.Room()
	return r.Release, r.Take(n)
}

// sharing counts a Body once for all clients that it is being sent to.
type sharing struct {
	mu      sync.Mutex
	readers int
	room    Room
}

// enter counts a client. While there is one, n bytes are taken for the Body and its variants. Its error
// is ErrFull.
func (s *sharing) enter(b *Budget, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.budget = b
	if more := n - int(s.room.bytes); more > 0 {
		if err := s.room.Take(more); err != nil {
			return err
		}
	}
	s.readers++
	return nil
}

func (s *sharing) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers--; s.readers == 0 {
		s.room.Release()
	}
}
