package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/bits"
	"sync"
)

// An identicon is a field of 5 × 5 cells, the right half mirroring the left. Filled cells flow
// together: outer and inner corners are rounded. The picture is computed from a SHA-256 of the id
// with integers, so an id looks the same on every machine, in every version and in every size. The
// golden files ensure that.
const (
	identiconCells = 5
	identiconSub   = 4 // samples on a pixel's side
	identiconSalt  = "registry identicon 1\x00"
)

// identicons encodes identicons with a pool of buffers. Any goroutine may use it.
type identicons struct{ buffers encoderBuffers }

// encoderBuffers implements png.EncoderBufferPool.
type encoderBuffers struct{ pool sync.Pool }

func (b *encoderBuffers) Get() *png.EncoderBuffer {
	buf, _ := b.pool.Get().(*png.EncoderBuffer)
	return buf
}

func (b *encoderBuffers) Put(buf *png.EncoderBuffer) { b.pool.Put(buf) }

// encode draws the identicon of an id as a PNG. size is one of 16, 32, 64, 128, 256 and 512 pixels.
func (i *identicons) encode(id string, size int) (picture, error) {
	encoder := png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: &i.buffers}
	var out bytes.Buffer
	out.Grow(1 << 10)
	if err := encoder.Encode(&out, drawIdenticon(id, size)); err != nil {
		return picture{}, fmt.Errorf("upstream: identicon: %w", err)
	}
	return picture{"image/png", out.Bytes()}, nil
}

// drawIdenticon shades each pixel by how many of its samples are inside the figure.
func drawIdenticon(id string, size int) *image.Paletted {
	sum := sha256.Sum256([]byte(identiconSalt + id))
	field, geometry := identiconField(sum), newGeometry(size)
	img := image.NewPaletted(image.Rect(0, 0, size, size), identiconPalette(sum))
	counts := make([]uint8, size)
	for y := range size {
		clear(counts)
		for sub := range identiconSub {
			geometry.addRow(counts, &field, y*identiconSub+sub)
		}
		row := img.Pix[y*img.Stride:]
		for x, n := range counts { // 0 to 16 samples make 16 shades
			row[x] = n - n/16
		}
	}
	return img
}

// field marks the filled cells, by row and column, with an empty border around them.
type field [identiconCells + 2][identiconCells + 2]bool

// identiconField takes 15 bits of sum for the left half and the middle column. It skips bits that
// would make a nearly empty or nearly full field, because those look alike.
func identiconField(sum [sha256.Size]byte) (f field) {
	chosen := uint16(0b010_111_101_111_010) // if all are skipped: once in a few billion ids
	for i := 1; i+1 < len(sum); i++ {
		half := binary.BigEndian.Uint16(sum[i:]) >> 1
		if n := bits.OnesCount16(half); n >= 6 && n <= 10 {
			chosen = half
			break
		}
	}
	for i := range 15 {
		row, column := i/3+1, i%3+1
		filled := chosen>>i&1 == 1
		f[row][column], f[row][identiconCells+1-column] = filled, filled
	}
	return f
}

// identiconPalette mixes 16 shades between paper and ink, a pair that the first byte selects.
func identiconPalette(sum [sha256.Size]byte) color.Palette {
	pairs := identiconColors()
	pair := pairs[int(sum[0])%len(pairs)]
	palette := make(color.Palette, 16)
	for i := range palette {
		mix := func(shift int) uint8 {
			paper, ink := pair[0]>>shift&0xff, pair[1]>>shift&0xff
			return uint8((int(paper)*(15-i) + int(ink)*i + 7) / 15)
		}
		palette[i] = color.RGBA{mix(16), mix(8), mix(0), 0xff}
	}
	return palette
}

// geometry has lengths in samples. For the sizes of the contract all are whole numbers: a half cell
// is 5 samples at 16 pixels and 160 at 512.
type geometry struct {
	half   int   // half the side of a cell
	margin int   // before the first cell
	chord  []int // by distance from the center of a circle of radius half: half the chord's length
}

func newGeometry(size int) geometry {
	samples := size * identiconSub
	g := geometry{half: samples * 5 / 64}
	g.margin = (samples - 2*identiconCells*g.half) / 2
	g.chord = make([]int, g.half)
	for d := range g.chord {
		// A sample is at the middle of its square: doubled coordinates make that an integer.
		for width := g.half; width > 0; width-- {
			if x, y := 2*width-1, 2*d+1; x*x+y*y <= 4*g.half*g.half {
				g.chord[d] = width
				break
			}
		}
	}
	return g
}

// addRow adds a row of samples to the counts of the pixels it crosses. Every cell is two half cells
// wide, and in each of those the filled samples are one run: from the middle of the cell outwards
// or, in the corner of an empty cell, from its edge inwards.
func (g *geometry) addRow(counts []uint8, f *field, y int) {
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
func (g *geometry) run(f *field, row, beyond, column, beside, distance int) (near, far int) {
	vertical, horizontal := f[beyond][column], f[row][beside]
	switch {
	case f[row][column] && !vertical && !horizontal:
		return 0, g.chord[distance] // an outer corner
	case f[row][column]:
		return 0, g.half
	case vertical && horizontal && f[beyond][beside]:
		return g.chord[distance], g.half // an inner corner to fill
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

// identiconColors are pairs of paper and ink as 0xRRGGBB: a light and a dark one each of sixteen
// hues between teal and plum, and grays. None is red, amber or green: those are the colors of
// verdicts. The order is part of every picture.
func identiconColors() [16][2]uint32 {
	return [...][2]uint32{
		{0xdff3f6, 0x1f86a0}, {0xe0f1f8, 0x2a7ca8}, {0xe3eefb, 0x2f6fb5}, {0xe4ecfb, 0x3d66bd},
		{0xe6e9fb, 0x4a5bc4}, {0xe9e8fb, 0x5a55c4}, {0xeee8fb, 0x7450c0}, {0xf2e6fa, 0x884ab4},
		{0xf5e6f8, 0x9a46ab}, {0xf3e6f8, 0x8a3f90}, {0xe8edf0, 0x51697a}, {0xe9ebf2, 0x565f80},
		{0xeeeaf3, 0x6d5d80}, {0xe2f0f3, 0x35707f}, {0xe5ecf4, 0x3f5f86}, {0xececf0, 0x62626e},
	}
}
