package upstream

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func avatarSizes() []int { return []int{16, 32, 64, 128, 256, 512} }

func drawn(t testing.TB, id string, size int) ([]byte, *image.Paletted) {
	t.Helper()
	p, err := encodeIdenticon(id, size)
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(p))
	require.NoError(t, err)
	return p, img.(*image.Paletted)
}

// An id looks the same forever. Pixels are compared and not files: another version of Go may compress otherwise.
func TestGoldenIdenticons(t *testing.T) {
	for _, id := range []string{"1", "100000000000000001", "99004682649769955462", "aB_-"} {
		for _, size := range avatarSizes() {
			_, got := drawn(t, id, size)
			text, err := os.ReadFile(filepath.Join("testdata", "identicon_"+id+"_"+strconv.Itoa(size)+".golden.png"))
			require.NoError(t, err)
			want, err := png.Decode(bytes.NewReader(text))
			require.NoError(t, err)
			require.Equal(t, want.(*image.Paletted), got, "%s at %d", id, size)
		}
	}
}

// Every id has a picture with something in it, mirrored, with free edges, and the cells are
// those of its field whatever the size.
func TestIdenticonShape(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		id := rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`).Draw(r, "id")
		size := rapid.SampledFrom(avatarSizes()).Draw(r, "size")
		img := drawIdenticon(id, size)
		ink := 0
		for y := range size {
			for x := range size {
				shade := img.ColorIndexAt(x, y)
				if shade != img.ColorIndexAt(size-1-x, y) {
					r.Fatalf("%d,%d is not mirrored", x, y)
				}
				ink += int(shade)
			}
		}
		for i := range size {
			for _, edge := range []uint8{img.ColorIndexAt(i, 0), img.ColorIndexAt(i, size-1), img.ColorIndexAt(0, i), img.ColorIndexAt(size-1, i)} {
				if edge != 0 {
					r.Fatal("the edge is not free")
				}
			}
		}
		if share := ink * 100 / (size * size); share < 10 || share > 55 {
			r.Fatalf("%d %% of it is ink", share)
		}
		small := drawIdenticon(id, 128)
		for y := range identiconCells {
			for x := range identiconCells {
				if inked(img, x, y) != inked(small, x, y) {
					r.Fatalf("cell %d,%d differs at %d", x, y, size)
				}
			}
		}
	})
}

// inked looks at the middle of a cell.
func inked(img *image.Paletted, x, y int) bool {
	size := img.Rect.Dx()
	cell := identiconCell(size)
	margin := (size - identiconCells*cell) / 2
	return img.ColorIndexAt(margin+x*cell+cell/2, margin+y*cell+cell/2) == 1
}
