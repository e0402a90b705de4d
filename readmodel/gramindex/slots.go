package gramindex

import "math/bits"

// slots is the memory of many short lists: cells of 16 bits in runs of a power of two. A list that
// has filled its run moves to one of twice the length, and leaves the old one to others. The largest
// run is as long as a set, and is one.
type slots struct {
	pieces [][]uint16
	used   int                   // of all pieces, in cells
	free   [setClass + 1][]cells // runs given back, by class
}

// cells is where a run begins: a piece and an offset in it.
type cells uint32

const (
	pieceBits  = 19 // a piece is 1 MiB
	pieceCells = 1 << pieceBits

	setCells = setSize / slotSize
	// The runs of class c have 1<<c cells.
	firstClass = 2
	setClass   = 10 // 1<<setClass is setCells
)

func (s *slots) reset() {
	s.used = 0
	for class := range s.free {
		s.free[class] = s.free[class][:0]
	}
}

// class is that of a list with n slots in it, at least one.
func class(n int) int { return min(max(firstClass, bits.Len(uint(n-1))), setClass) }

func (s *slots) run(at cells, n int) []uint16 {
	in := at % pieceCells
	return s.pieces[at/pieceCells][in : int(in)+n]
}

// of is the cells of a list as they are written: slots in ascending order, or a set.
func (s *slots) of(l *list) []uint16 {
	if l.n == 0 {
		return nil
	}
	return s.run(l.cells, s.size(l)/slotSize)
}

// size is what a list takes when it is written.
func (s *slots) size(l *list) int { return min(l.n, setCells) * slotSize }

// add puts a slot behind the others of the list, unless it is the last of them.
func (s *slots) add(l *list, slot uint16) {
	if l.n >= setCells {
		s.run(l.cells, setCells)[slot/16] |= 1 << (slot % 16)
		return
	}
	if l.n > 0 {
		if s.run(l.cells, l.n)[l.n-1] == slot {
			return
		}
		if class(l.n+1) != class(l.n) {
			s.move(l)
		}
	} else {
		l.cells = s.take(firstClass)
	}
	s.run(l.cells, l.n+1)[l.n] = slot
	if l.n++; l.n == setCells {
		toSet(s.run(l.cells, setCells))
	}
}

// toSet turns ascending slots into their set.
func toSet(run []uint16) {
	var set [setCells]uint16
	for _, slot := range run {
		set[slot/16] |= 1 << (slot % 16)
	}
	copy(run, set[:])
}

// move gives a list a run of twice the length.
func (s *slots) move(l *list) {
	old := class(l.n)
	to := s.take(old + 1)
	copy(s.run(to, l.n), s.run(l.cells, l.n))
	s.free[old] = append(s.free[old], l.cells)
	l.cells = to
}

// take finds a run of a class.
func (s *slots) take(class int) cells {
	if n := len(s.free[class]); n > 0 {
		at := s.free[class][n-1]
		s.free[class] = s.free[class][:n-1]
		return at
	}
	size := 1 << class
	if s.used%pieceCells+size > pieceCells {
		s.used += pieceCells - s.used%pieceCells
	}
	if s.used/pieceCells == len(s.pieces) {
		s.pieces = append(s.pieces, make([]uint16, pieceCells))
	}
	at := cells(s.used)
	s.used += size
	return at
}
