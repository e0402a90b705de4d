package httpapi

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

// An identicon is a field of 5 × 5 cells, the right half mirroring the left, whose filled cells
// flow together: corners are rounded, inner ones as well. What is drawn follows from a SHA-256
// of the id with integers alone, so an id has the same picture on every machine, in every
// version and, but for its resolution, in every size. Nothing here may ever change what an id
// looks like: people recognise each other by it (golden files).
const (
	identiconCells = 5
	identiconSub   = 4 // samples of a pixel's side
	identiconSalt  = "registry identicon 1\x00"
)

// identicons draws and keeps a pool of encoder buffers. Any goroutine may use it.
type identicons struct{ buffers identiconBuffers }

// identiconBuffers implements png.EncoderBufferPool.
type identiconBuffers struct{ pool sync.Pool }

func (b *identiconBuffers) Get() *png.EncoderBuffer {
	buf, _ := b.pool.Get().(*png.EncoderBuffer)
	return buf
}

func (b *identiconBuffers) Put(buf *png.EncoderBuffer) { b.pool.Put(buf) }

// of is the picture of an id as a PNG; size is one of 16, 32, 64, 128, 256 and 512 pixels.
func (i *identicons) of(id string, size int) (Picture, error) {
	encoder := png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: &i.buffers}
	var out bytes.Buffer
	out.Grow(1 << 10)
	if err := encoder.Encode(&out, drawIdenticon(id, size)); err != nil {
		return Picture{}, fmt.Errorf("default picture: %w", err)
	}
	return Picture{"image/png", out.Bytes()}, nil
}

// drawIdenticon counts, for every pixel, how many of its samples are inside.
func drawIdenticon(id string, size int) *image.Paletted {
	sum := sha256.Sum256([]byte(identiconSalt + id))
	field, geometry := identiconField(sum), newIdenticonGeometry(size)
	img := image.NewPaletted(image.Rect(0, 0, size, size), identiconPalette(sum))
	counts := make([]uint8, size)
	for y := range size {
		clear(counts)
		for sub := range identiconSub {
			geometry.addRow(counts, &field, y*identiconSub+sub)
		}
		row := img.Pix[y*img.Stride:]
		for x, n := range counts { // 0 to 16 samples are 16 shades
			row[x] = n - n/16
		}
	}
	return img
}

// field says which cells are filled, by row and column, with an empty border around them.
type field [identiconCells + 2][identiconCells + 2]bool

// identiconField takes 15 bits for the left half and the middle. Fields that are nearly empty or
// nearly full look alike, so such bits are passed over.
func identiconField(sum [sha256.Size]byte) (f field) {
	chosen := uint16(0b010_111_101_111_010) // where all are passed over: once in a few billion ids
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

// identiconPalette mixes 16 shades between two of the colours, which the first byte chooses.
func identiconPalette(sum [sha256.Size]byte) color.Palette {
	pairs := identiconColours()
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

// identiconColours are pairs of paper and ink as 0xRRGGBB: a light and a dark one each of
// sixteen hues. The order is part of every picture.
func identiconColours() [16][2]uint32 {
	return [...][2]uint32{
		{0xfbe9e7, 0xc8553d}, {0xfff1e0, 0xd9822b}, {0xfdf6d8, 0xb8960c}, {0xf1f6dc, 0x7d9a24},
		{0xe6f4e4, 0x3f8f4a}, {0xdff3ec, 0x23897a}, {0xdff3f6, 0x1f86a0}, {0xe3eefb, 0x2f6fb5},
		{0xe6e9fb, 0x4a5bc4}, {0xeee8fb, 0x7450c0}, {0xf5e6f8, 0x9a46ab}, {0xfbe6f1, 0xbb4481},
		{0xfae7ea, 0xb23a55}, {0xefebe6, 0x7a6552}, {0xe8edf0, 0x51697a}, {0xe9efe9, 0x557163},
	}
}
