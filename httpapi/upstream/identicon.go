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

// An identicon is a field of 5 × 5 cells, whose right half mirrors the left. The picture is computed from a SHA-256 of the id, with
// integers only, so an id looks the same on every machine, in every version and in every size. The golden files ensure that.
const (
	identiconCells = 5
	identiconSalt  = "registry identicon 1\x00"
)

// identiconEncoder shares its buffers, which are larger than the pictures.
var identiconEncoder = png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: new(encoderBuffers)}

// encoderBuffers implements png.EncoderBufferPool.
type encoderBuffers struct{ pool sync.Pool }

func (b *encoderBuffers) Get() *png.EncoderBuffer {
	buf, _ := b.pool.Get().(*png.EncoderBuffer)
	return buf
}

func (b *encoderBuffers) Put(buf *png.EncoderBuffer) { b.pool.Put(buf) }

// encodeIdenticon draws the identicon of an id as a PNG. size is 16, 32, 64, 128, 256 or 512 pixels.
func encodeIdenticon(id string, size int) ([]byte, error) {
	var out bytes.Buffer
	if err := identiconEncoder.Encode(&out, drawIdenticon(id, size)); err != nil {
		return nil, fmt.Errorf("upstream: identicon: %w", err)
	}
	return out.Bytes(), nil
}

// drawIdenticon draws an id's field with a margin of about half a cell.
func drawIdenticon(id string, size int) *image.Paletted {
	sum := sha256.Sum256([]byte(identiconSalt + id))
	field := identiconField(sum)
	cell := identiconCell(size)
	margin := (size - identiconCells*cell) / 2

	const ink = 1 // the index in the palette; the rest of the picture has index 0, which is paper
	img := image.NewPaletted(image.Rect(0, 0, size, size), identiconPalette(sum))
	for y := range identiconCells * cell {
		for x := range identiconCells * cell {
			if field[y/cell][x/cell] {
				img.SetColorIndex(margin+x, margin+y, ink)
			}
		}
	}
	return img
}

// identiconCell returns the side of a cell in pixels: a sixth of the size, rounded down to an even number. Then both margins are
// equal, since every size is even, too.
func identiconCell(size int) int { return size / (identiconCells + 1) &^ 1 }

// identiconField fills the left half and the middle column with 15 bits of sum, three bits a row, and mirrors them. It tries the
// bits from byte 1, byte 2 and so on until they fill 6 to 10 cells, since nearly empty and nearly full fields look alike.
func identiconField(sum [sha256.Size]byte) (filled [identiconCells][identiconCells]bool) {
	// Once in a few billion ids, no bits of sum fill 6 to 10 cells. The field is then this one.
	half := uint16(0b010_111_101_111_010)
	for i := 1; i+1 < len(sum); i++ { // byte 0 selects the colors
		candidate := binary.BigEndian.Uint16(sum[i:]) >> 1
		if n := bits.OnesCount16(candidate); n >= 6 && n <= 10 {
			half = candidate
			break
		}
	}

	for bit := range 15 {
		row := &filled[bit/3]
		column := bit % 3
		row[column] = half>>bit&1 == 1
		row[identiconCells-1-column] = row[column]
	}
	return filled
}

// identiconPalette returns the colors of paper and ink. The first byte of sum selects them.
func identiconPalette(sum [sha256.Size]byte) (palette color.Palette) {
	pairs := identiconColors()
	for _, c := range pairs[int(sum[0])%len(pairs)] {
		palette = append(palette, color.RGBA{uint8(c >> 16), uint8(c >> 8), uint8(c), 0xff})
	}
	return palette
}

// identiconColors returns pairs of paper and ink as 0xRRGGBB: sixteen hues between teal and plum, and grays. None is red, amber
// or green, the colors of verdicts. The order is part of every picture.
func identiconColors() [16][2]uint32 {
	return [...][2]uint32{
		{0xdff3f6, 0x1f86a0}, {0xe0f1f8, 0x2a7ca8}, {0xe3eefb, 0x2f6fb5}, {0xe4ecfb, 0x3d66bd},
		{0xe6e9fb, 0x4a5bc4}, {0xe9e8fb, 0x5a55c4}, {0xeee8fb, 0x7450c0}, {0xf2e6fa, 0x884ab4},
		{0xf5e6f8, 0x9a46ab}, {0xf3e6f8, 0x8a3f90}, {0xe8edf0, 0x51697a}, {0xe9ebf2, 0x565f80},
		{0xeeeaf3, 0x6d5d80}, {0xe2f0f3, 0x35707f}, {0xe5ecf4, 0x3f5f86}, {0xececf0, 0x62626e},
	}
}
