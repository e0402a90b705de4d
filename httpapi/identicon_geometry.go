package httpapi

// identiconGeometry is the size of things in samples. With the sizes of the contract all of it
// is whole numbers: a half cell is 5 samples at 16 pixels and 160 at 512.
type identiconGeometry struct {
	half   int   // half the side of a cell
	margin int   // before the first cell
	chord  []int // by distance from the centre of a circle of radius half: half its width there
}

func newIdenticonGeometry(size int) identiconGeometry {
	samples := size * identiconSub
	g := identiconGeometry{half: samples * 5 / 64}
	g.margin = (samples - 2*identiconCells*g.half) / 2
	g.chord = make([]int, g.half)
	for d := range g.chord {
		// A sample is at the middle of its square: doubled coordinates keep that whole.
		for width := g.half; width > 0; width-- {
			if x, y := 2*width-1, 2*d+1; x*x+y*y <= 4*g.half*g.half {
				g.chord[d] = width
				break
			}
		}
	}
	return g
}

// addRow adds a row of samples to the counts of the pixels it crosses. Every cell is two half
// cells wide, and in each of those the filled samples are one run: from the middle of the cell
// outwards or, in the corner of an empty cell, from its edge inwards.
func (g *identiconGeometry) addRow(counts []uint8, f *field, y int) {
	y -= g.margin
	if y < 0 || y >= 2*identiconCells*g.half {
		return
	}
	row, in := y/(2*g.half)+1, y%(2*g.half)
	beyond, distance := row-1, g.half-1-in // the row that this half of the cell touches
	if in >= g.half {
		beyond, distance = row+1, in-g.half
	}
	for column := 1; column <= identiconCells; column++ {
		middle := g.margin + (2*column-1)*g.half
		near, far := g.run(f, row, beyond, column, column-1, distance)
		addRun(counts, middle-far, middle-near)
		near, far = g.run(f, row, beyond, column, column+1, distance)
		addRun(counts, middle+near, middle+far)
	}
}

// run is the filled part of a half cell, as distances from the middle of the cell.
func (g *identiconGeometry) run(f *field, row, beyond, column, beside, distance int) (near, far int) {
	vertical, horizontal := f[beyond][column], f[row][beside]
	switch {
	case f[row][column] && !vertical && !horizontal:
		return 0, g.chord[distance] // a corner that sticks out
	case f[row][column]:
		return 0, g.half
	case vertical && horizontal && f[beyond][beside]:
		return g.chord[distance], g.half // a corner to fill
	}
	return 0, 0
}

// addRun counts the samples from start up to end.
func addRun(counts []uint8, start, end int) {
	for start < end {
		pixel := start / identiconSub
		upTo := min(end, (pixel+1)*identiconSub)
		counts[pixel] += uint8(upTo - start)
		start = upTo
	}
}
